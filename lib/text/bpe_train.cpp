// Incremental BPE training (the idea: Sennrich, Haddow and Birch, arXiv 1508.07909; nothing of their code). Counts of
// pairs are kept up to date where a merge changes them, and a heap gives the next pair. A merge costs as much as it has
// occurrences, so that a single word of a megabyte is no worse than many short ones. Not parallel: counting the words
// is what takes long.
#define XXH_INLINE_ALL // words are short: the call would cost as much as the hash
#include <xxhash.h>

#include "text/bpe_train.h"

#include "base/error.h"
#include "text/pair_table.h"
#include "text/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <set>

namespace noether::text {

WordCounts::Slot& WordCounts::slot_of(std::string_view word, std::uint64_t hash) {
  for (std::size_t i = hash;; ++i) {
    Slot& slot = slots_[i & (slots_.size() - 1)];
    if (slot.word == 0 || (slot.tag == hash >> 32 && this->word(slot.word - 1) == word)) return slot;
  }
}

void WordCounts::add(std::string_view word, std::uint64_t count) {
  const std::uint64_t hash = XXH3_64bits(word.data(), word.size());
  Slot* slot = &slot_of(word, hash);
  if (slot->word != 0) {
    words_[slot->word - 1].count += count;
    return;
  }
  if (words_.size() + 1 >= std::numeric_limits<std::uint32_t>::max()) throw Error("more than 4 billion distinct words");
  if (2 * (words_.size() + 1) > slots_.size()) {
    std::vector<Slot>(2 * slots_.size()).swap(slots_);
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t other = XXH3_64bits(this->word(i).data(), words_[i].size);
      slot_of(this->word(i), other) = {static_cast<std::uint32_t>(other >> 32), static_cast<std::uint32_t>(i + 1)};
    }
    slot = &slot_of(word, hash);
  }
  words_.push_back({bytes_.size(), word.size(), count});
  bytes_ += word;
  *slot = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(words_.size())};
}

void WordCounts::add(const WordCounts& other) {
  for (std::size_t i = 0; i < other.size(); ++i) add(other.word(i), other.count(i));
}

std::uint64_t WordCounts::total() const {
  std::uint64_t total = 0;
  for (const Word& word : words_) total += word.count;
  return total;
}

WordCounts count_words(DocumentReader& reader, PreTokenizer pre_tokenizer, int threads, Reporter* reporter) {
  std::vector<WordCounts> counts(static_cast<std::size_t>(std::max(threads, 1)));
  Batch batch;
  while (reader.next(batch)) {
    for_each_piece(batch, threads, [&](int worker, std::size_t piece) {
      WordCounts& mine = counts[static_cast<std::size_t>(worker)];
      for_each_word(pre_tokenizer, batch[piece], [&](const char* begin, const char* end) {
        mine.add({begin, static_cast<std::size_t>(end - begin)});
      });
    });
    if (reporter != nullptr)
      reporter->progress_bytes(static_cast<double>(reader.bytes_read()), static_cast<double>(reader.bytes_in_all()));
  }
  for (std::size_t i = 1; i < counts.size(); ++i) counts[0].add(counts[i]);
  return std::move(counts[0]);
}

namespace {

/// All distinct words byte by byte, with an end between two. The first and the last place of a token hold its id, so
/// that its neighbours are found from either side; places inside hold kInside.
class Trainer {
public:
  Trainer(const WordCounts& words, const TrainOptions& options);
  Tokenizer train(Reporter* reporter);

private:
  static constexpr std::uint32_t kEnd = 0xFFFFFFFF, kInside = 0xFFFFFFFE;
  struct Pair {
    std::uint32_t left, right;
    std::uint64_t count = 0;
    std::vector<std::uint32_t> places; ///< where it began at some time, ascending within a word; some have gone since
  };
  struct Best { ///< the count may have fallen since
    std::uint64_t count;
    std::uint32_t pair;
  };
  Pair& pair(std::uint32_t left, std::uint32_t right);
  void appears(std::uint32_t left, std::uint32_t right, std::uint32_t place);
  bool worse(const Best& a, const Best& b) const;
  void push(std::size_t first);
  void merge(const Pair& merged, std::uint32_t id);
  std::uint32_t length(std::uint32_t id) const { return static_cast<std::uint32_t>(tokens_[id].size()); }

  const TrainOptions& options_;
  std::vector<std::uint32_t> ids_, word_of_; ///< by place
  std::vector<std::uint64_t> counts_;        ///< by word
  std::vector<std::string> tokens_;
  PairTable numbers_;
  std::vector<Pair> pairs_;
  std::vector<Best> heap_;
};

Trainer::Trainer(const WordCounts& words, const TrainOptions& options) : options_(options) {
  const std::uint64_t places = words.bytes() + words.size() + 1;
  if (places >= kInside) throw Error("the distinct words are {} bytes long, more than training takes", words.bytes());
  for (int byte = 0; byte < 256; ++byte) tokens_.emplace_back(1, static_cast<char>(byte));
  ids_.reserve(places);
  word_of_.reserve(places);
  ids_.push_back(kEnd);
  word_of_.push_back(0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    counts_.push_back(words.count(i));
    for (const char c : words.word(i)) ids_.push_back(static_cast<unsigned char>(c));
    ids_.push_back(kEnd);
    word_of_.resize(ids_.size(), static_cast<std::uint32_t>(i));
  }
  for (std::uint32_t place = 1; place + 1 < ids_.size(); ++place)
    if (ids_[place] != kEnd && ids_[place + 1] != kEnd) appears(ids_[place], ids_[place + 1], place);
}

Trainer::Pair& Trainer::pair(std::uint32_t left, std::uint32_t right) {
  const std::uint32_t number = numbers_.insert(left, right, static_cast<std::uint32_t>(pairs_.size()));
  if (number == pairs_.size()) pairs_.push_back({left, right, 0, {}});
  return pairs_[number];
}

void Trainer::appears(std::uint32_t left, std::uint32_t right, std::uint32_t place) {
  Pair& found = pair(left, right);
  found.count += counts_[word_of_[place]];
  found.places.push_back(place);
}

bool Trainer::worse(const Best& a, const Best& b) const {
  if (a.count != b.count) return a.count < b.count;
  const Pair& x = pairs_[a.pair];
  const Pair& y = pairs_[b.pair];
  const int left = tokens_[x.left].compare(tokens_[y.left]);
  return left != 0 ? left > 0 : tokens_[x.right] > tokens_[y.right];
}

/// Puts pairs from number `first` on into the heap.
void Trainer::push(std::size_t first) {
  for (std::size_t i = first; i < pairs_.size(); ++i) {
    if (pairs_[i].count < options_.least_count) continue;
    heap_.push_back({pairs_[i].count, static_cast<std::uint32_t>(i)});
    std::push_heap(heap_.begin(), heap_.end(), [this](const Best& a, const Best& b) { return worse(a, b); });
  }
}

/// Replaces `merged` by token `id` wherever it still stands. New pairs all hold `id`, which no pair held before: so
/// each pair's places come from one call, in the order of `merged.places`, and counts of older pairs can only fall.
void Trainer::merge(const Pair& merged, std::uint32_t id) {
  for (const std::uint32_t place : merged.places) {
    // A place whose token has become part of another holds that one's id, which is longer, or kInside.
    const std::uint32_t middle = place + length(merged.left);
    if (ids_[place] != merged.left || ids_[middle] != merged.right) continue;
    const std::uint32_t after = middle + length(merged.right);
    const std::uint64_t count = counts_[word_of_[place]];
    const std::uint32_t left = ids_[place - 1], right = ids_[after];
    ids_[middle - 1] = ids_[middle] = kInside;
    ids_[place] = ids_[after - 1] = id;
    if (left != kEnd) {
      pair(left, merged.left).count -= count;
      appears(left, id, place - length(left));
    }
    if (right != kEnd) {
      pair(merged.right, right).count -= count;
      appears(id, right, place);
    }
  }
}

Tokenizer Trainer::train(Reporter* reporter) {
  const std::size_t target = options_.vocab_size - options_.special.size();
  const auto worse_first = [this](const Best& a, const Best& b) { return worse(a, b); };
  Tokenizer tokenizer;
  tokenizer.pre_tokenizer = options_.pre_tokenizer;
  push(0);
  while (tokens_.size() < target && !heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), worse_first);
    const Best best = heap_.back();
    heap_.pop_back();
    if (const std::uint64_t count = pairs_[best.pair].count; count != best.count) { // it fell: look at it again
      if (count < options_.least_count) continue;
      heap_.push_back({count, best.pair});
      std::push_heap(heap_.begin(), heap_.end(), worse_first);
      continue;
    }
    const Pair merged = std::move(pairs_[best.pair]);
    const auto id = static_cast<std::uint32_t>(tokens_.size());
    tokens_.push_back(tokens_[merged.left] + tokens_[merged.right]);
    tokenizer.merges.emplace_back(merged.left, merged.right);
    const std::size_t first = pairs_.size();
    merge(merged, id);
    pairs_[best.pair].count = 0;
    push(first);
    if (reporter != nullptr && reporter->progress_due())
      reporter->progress(fmt::format("merges {}/{}", tokenizer.merges.size(), target - 256));
  }
  tokenizer.tokens = std::move(tokens_);
  for (const std::string& spelling : options_.special) {
    tokenizer.special.push_back({spelling, tokenizer.vocab_size()});
    tokenizer.tokens.push_back(spelling);
  }
  if (!tokenizer.special.empty()) tokenizer.end_of_text = tokenizer.special.front().id;
  return tokenizer;
}

} // namespace

void check(const TrainOptions& options) {
  const std::size_t least = 256 + options.special.size();
  if (options.vocab_size < least)
    throw UsageError("a vocabulary of {} has no room for 256 bytes and {} special tokens: {} at least",
                     options.vocab_size, options.special.size(), least);
  const std::set<std::string> distinct(options.special.begin(), options.special.end());
  if (distinct.size() != options.special.size() || distinct.count("") != 0)
    throw UsageError("special tokens must be different, and not empty");
}

Tokenizer train_bpe(const WordCounts& words, const TrainOptions& options, Reporter* reporter) {
  check(options);
  return Trainer(words, options).train(reporter);
}

} // namespace noether::text
