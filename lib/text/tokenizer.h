// A byte-level BPE vocabulary as plain data, and how it is read, written and identified.
#pragma once

#include "store/reader.h"
#include "store/writer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace noether::text {

/// How text is cut into words before merging. The patterns are GPT-2's and Llama 3's, exactly.
enum class PreTokenizer { gpt2, llama3 };
PreTokenizer pre_tokenizer_of(std::string_view name); ///< Throws UsageError with a suggestion.
std::string_view name_of(PreTokenizer pre_tokenizer);

struct SpecialToken {
  std::string spelling;
  std::uint32_t id;
};

/// Merges join two adjacent tokens of a word into the token that spells both, the earliest in the list first.
struct Tokenizer {
  PreTokenizer pre_tokenizer = PreTokenizer::gpt2;
  std::vector<std::string> tokens; ///< bytes of each token, by id; a special token's are its spelling
  std::vector<std::pair<std::uint32_t, std::uint32_t>> merges;
  std::vector<SpecialToken> special;        ///< by id
  std::optional<std::uint32_t> end_of_text; ///< the special token that stands between documents
  /// A word that is a token as a whole becomes that token, whatever the merges make of it ("ignore_merges" of
  /// tokenizer.json, which Llama 3 sets: some of its tokens are out of the merges' reach).
  bool whole_words = false;

  std::uint32_t vocab_size() const { return static_cast<std::uint32_t>(tokens.size()); }
  bool is_special(std::uint32_t id) const;
  /// Bytes of text that a token stands for: its length, and 0 for a special token.
  std::uint32_t text_bytes(std::uint32_t id) const;
};

/// The identity of a vocabulary: 32 hexadecimal digits over everything that decides how text is encoded.
std::string digest(const Tokenizer& tokenizer);

/// What is wrong with `tokenizer`, in a few words; nothing when it fits together: ids below 2^31, all 256 bytes are
/// tokens, a merge joins two tokens into one that spells both, no two ordinary tokens and no two special ones have the
/// same bytes.
std::optional<std::string> fault(const Tokenizer& tokenizer);

/// Adds the group /tokenizer to a file of any kind (noether-format(5)):
///
///   /tokenizer            attributes: type "bpe"; pre_tokenizer "gpt2" or "llama3"; whole_words 0 or 1;
///                         end_of_text: id of the token between documents, or -1; digest: see above
///   /tokenizer/bytes      uint8 [all]: the bytes of all tokens, in order of their ids
///   /tokenizer/offsets    uint64 [vocab_size + 1]: token i is bytes[offsets[i]] .. bytes[offsets[i + 1] - 1]
///   /tokenizer/merges     uint32 [merges, 2]: ids of the left and right token, first merge first
///   /tokenizer/special    uint32 [special tokens]: their ids, ascending
void put(store::FileWriter& file, const Tokenizer& tokenizer);
/// Reads the group /tokenizer. Throws Error when it is absent, damaged or does not fit together.
Tokenizer read_tokenizer(const store::FileReader& file);

} // namespace noether::text
