// Training a byte-level BPE: how often each word occurs, and then the merges.
#pragma once

#include "base/reporter.h"
#include "text/documents.h"
#include "text/tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace noether::text {

/// Distinct words and how often each occurs, in 64 bits. Memory grows with the distinct words alone.
class WordCounts {
public:
  WordCounts() : slots_(1U << 12) {}
  void add(std::string_view word, std::uint64_t count = 1);
  void add(const WordCounts& other);

  std::size_t size() const { return words_.size(); }
  std::string_view word(std::size_t i) const {
    return std::string_view(bytes_).substr(words_[i].begin, words_[i].size);
  }
  std::uint64_t count(std::size_t i) const { return words_[i].count; }
  std::uint64_t bytes() const { return bytes_.size(); } ///< of the distinct words
  std::uint64_t total() const;                          ///< words, each as often as it occurs

private:
  struct Word {
    std::uint64_t begin, size, count;
  };
  struct Slot {
    std::uint32_t tag = 0, word = 0; ///< word + 1; 0: free
  };
  Slot& slot_of(std::string_view word, std::uint64_t hash);

  std::string bytes_;
  std::vector<Word> words_;
  std::vector<Slot> slots_;
};

/// Counts the words of all documents on `threads` threads. The same for any number of threads, and however the text
/// came. reporter may be null; it shows progress in bytes.
WordCounts count_words(DocumentReader& reader, PreTokenizer pre_tokenizer, int threads, Reporter* reporter);

struct TrainOptions {
  std::uint32_t vocab_size = 4096; ///< bytes, merges and special tokens together
  PreTokenizer pre_tokenizer = PreTokenizer::gpt2;
  std::vector<std::string> special{"<|endoftext|>"}; ///< the first stands between documents
  std::uint64_t least_count = 2;                     ///< a pair that occurs less often is not merged
};

/// Throws UsageError when vocab_size has no room for 256 bytes and the special tokens, or two of those are the same.
void check(const TrainOptions& options);

/// Merges, again and again, the pair of neighbours that occurs most often (neighbours within words; pairs that overlap,
/// as in aaa, all count), of equally frequent ones that with the smallest bytes of its left token, then of its right.
/// Ids: 0 to 255 are the bytes, then the merges' tokens in their order, and the special tokens last. The vocabulary is
/// smaller than asked for when no pair is left that occurs least_count times: compare vocab_size().
/// Throws what check() throws.
Tokenizer train_bpe(const WordCounts& words, const TrainOptions& options, Reporter* reporter = nullptr);

} // namespace noether::text
