// The loss of a checkpoint on a fixed validation set, every token scored once.
#pragma once

#include "architecture/checkpoint.h"
#include "base/reporter.h"
#include "evaluation/biases.h"
#include "models/linear.h"
#include "text/token_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace noether::evaluation {

/// What stands before the first token of the data, so that it has a prediction too. automatic: end-of-text where the
/// tokenizer has one, as before every later document; without a prefix the first token is not scored.
enum class Prefix { automatic, end_of_text, none };
/// From the word of the command line. Throws UsageError with a suggestion.
Prefix prefix_of(std::string_view name);

struct LossOptions {
  std::int64_t window = 0; ///< tokens of a forward pass; 0: the model's context
  std::int64_t stride = 0; ///< from a window to the next; 0: the window. See Window in score.h
  std::int64_t limit = 0;  ///< the first so many tokens only; 0: all
  Prefix prefix = Prefix::automatic;
  Biases biases = Biases::mean;
  std::uint64_t seed = 0; ///< of sampled biases: window k has those of (seed, step k)
  models::Precision precision = models::Precision::f32;
  int threads = 1;
};

/// One row. Losses are in nats a token.
struct Loss {
  std::int64_t tokens = 0; ///< that were scored
  std::int64_t bytes = 0;  ///< of text that they stand for; end-of-text stands for none, though its loss counts
  std::int64_t window = 0, stride = 0;
  bool prefixed = false;
  double loss = 0;
  std::optional<double> standard_error;
  std::int64_t units = 0; ///< of the standard error
  bool over_documents = false;
  double perplexity = 0;
  std::optional<double> bits_per_byte;
  std::optional<double> min_batch_4096;
  std::string_view biases; ///< "none" where the model has none
  double seconds = 0;
};

/// Throws Error unless these tokens can be given to this model: of its tokenizer, in its vocabulary, some to score, a
/// window that its context holds. Reads the configuration alone, so it is fit for a check before long work.
void check_fit(const store::FileReader& checkpoint, const text::TokenFile& tokens, const LossOptions& options);

/// Scores the tokens. Each window is a forward pass of its own on one thread, and sums are in double in the order of
/// the data: the result depends neither on the number of threads nor on what else is evaluated. Windows cross the ends
/// of documents, as in training. Turns off LibTorch's own threads in this process. Throws Error as check_fit() does,
/// and for an id beyond the model's vocabulary or a loss that is not finite.
Loss evaluate_loss(architecture::Checkpoint& checkpoint, const text::TokenFile& tokens, const LossOptions& options,
                   Reporter& reporter);

} // namespace noether::evaluation
