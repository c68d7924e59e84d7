// Tokens for a step: windows read from the files as integers.
#pragma once

#include "text/token_file.h"
#include "training/examples.h"
#include "training/settings.h"
#include "training/windows.h"

#include <cstdint>
#include <vector>

namespace noether::training {

/// rows x context numbers each. A target of -1 does not count.
struct Batch {
  std::int64_t rows = 0, context = 0;
  std::int64_t counted = 0; ///< targets that count
  std::vector<std::int64_t> tokens, targets;
};

/// The token files of a run and the order of their windows; or examples, each of which is a window of its own.
class Data {
public:
  /// Throws Error when a file is shorter than a window: "tokens.h5: 100 tokens, fewer than the 129 that --context 128
  /// needs".
  Data(const std::vector<text::TokenFile>& files, const Settings& settings);

  Data(const std::vector<Examples>& examples, const Settings& settings);

  /// The `rows` windows that come after `index` others. Of examples: as long as the longest of them.
  Batch batch(std::uint64_t index, std::int64_t rows) const;
  const Windows& windows() const { return windows_; }

  double targets_a_window() const; ///< that count, on average

private:
  const std::vector<text::TokenFile>* files_ = nullptr; ///< or
  const std::vector<Examples>* examples_ = nullptr;
  std::int64_t context_;
  Windows windows_;
};

/// The windows that a validation looks at: end to end, as many as hold `tokens` targets, evenly spread over the file
/// when it has more.
Batch validation_batch(const text::TokenFile& file, std::int64_t context, std::int64_t tokens);

/// Examples that hold about `tokens` targets, evenly spread.
Batch validation_batch(const Examples& examples, std::int64_t tokens);

/// Throws Error when a file's tokens are those of another tokenizer than the checkpoint's, naming both digests. A
/// checkpoint without one only asks that the vocabulary is no larger than the model's.
void check_tokenizer(const text::TokenFile& file, const text::Tokenizer* tokenizer, std::int64_t vocab_size,
                     const std::string& checkpoint_name);

} // namespace noether::training
