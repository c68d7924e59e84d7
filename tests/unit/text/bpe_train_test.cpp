#include "text/bpe_train.h"

#include "base/error.h"
#include "store/scratch.h"
#include "text/pre_tokenizer.h"
#include "text/reference.h"

#include <gtest/gtest.h>

#include <map>

namespace noether::text {
namespace {

Tokenizer train(const WordCounts& words, std::uint32_t vocab_size) {
  TrainOptions options;
  options.vocab_size = vocab_size;
  return train_bpe(words, options);
}

std::vector<std::string> merged_tokens(const Tokenizer& tokenizer) {
  return {tokenizer.tokens.begin() + 256,
          tokenizer.tokens.end() - static_cast<std::ptrdiff_t>(tokenizer.special.size())};
}

// Counted by hand: ab 3+2, bc 3, bd 2, then (ab)c 3, then (ab)d 2.
TEST(TrainBpe, ATinyText) {
  WordCounts words;
  words.add("abc", 3);
  words.add("abd", 2);
  const Tokenizer tokenizer = train(words, 260);
  EXPECT_EQ(merged_tokens(tokenizer), (std::vector<std::string>{"ab", "abc", "abd"}));
  EXPECT_EQ(tokenizer.merges[1], (std::pair<std::uint32_t, std::uint32_t>{256, 'c'}));
  EXPECT_EQ(tokenizer.tokens[259], "<|endoftext|>");
  EXPECT_EQ(tokenizer.end_of_text, 259U);
  EXPECT_EQ(fault(tokenizer), std::nullopt);
}

// Equal counts: the smaller left bytes, as bytes and not as signed characters, then the smaller right ones. The order
// in which the words came plays no part.
TEST(TrainBpe, TiesAreBrokenByBytes) {
  for (const bool backwards : {false, true}) {
    std::vector<std::string> texts{"\xff"
                                   "a",
                                   "zq", "ab", "aa", "\x01\xff"};
    if (backwards) std::reverse(texts.begin(), texts.end());
    WordCounts words;
    for (const std::string& text : texts) words.add(text, 7);
    EXPECT_EQ(merged_tokens(train(words, 262)), (std::vector<std::string>{"\x01\xff", "aa", "ab", "zq",
                                                                          "\xff"
                                                                          "a"}));
  }
}

// aaaa: three pairs aa, then two tokens aa aa: one pair.
TEST(TrainBpe, PairsThatOverlap) {
  WordCounts words;
  words.add("aaaa", 2);
  words.add("bb", 5);
  EXPECT_EQ(merged_tokens(train(words, 260)), (std::vector<std::string>{"aa", "bb", "aaaa"})); // 6, 5, 2
}

TEST(TrainBpe, CountsBeyond32Bits) {
  WordCounts words;
  words.add("ab", 5'000'000'000);
  words.add("cd", 5'000'000'001);
  words.add("ef", 705'032'706); // 5'000'000'002 modulo 2^32
  EXPECT_EQ(merged_tokens(train(words, 259)), (std::vector<std::string>{"cd", "ab"}));
  EXPECT_EQ(words.total(), 10'705'032'707U);
}

// Nothing is made of pairs that occur once: the vocabulary is smaller than asked for.
TEST(TrainBpe, StopsWhenNoPairOccursTwice) {
  WordCounts words;
  words.add("abcdef");
  words.add("xx", 2);
  const Tokenizer tokenizer = train(words, 4096);
  EXPECT_EQ(merged_tokens(tokenizer), std::vector<std::string>{"xx"});
  EXPECT_EQ(tokenizer.vocab_size(), 258U);
}

TEST(TrainBpe, RefusesAVocabularyWithoutRoom) {
  EXPECT_EQ(store::message([] { train(WordCounts(), 256); }),
            "a vocabulary of 256 has no room for 256 bytes and 1 special tokens: 257 at least");
}

/// By the definition: count all pairs again after every merge.
std::vector<std::string> trained_by_definition(const WordCounts& words, std::size_t merges) {
  std::vector<std::vector<std::string>> parts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    parts.emplace_back();
    for (const char c : words.word(i)) parts.back().emplace_back(1, c);
  }
  std::vector<std::string> made;
  while (made.size() < merges) {
    std::map<std::pair<std::string, std::string>, std::uint64_t> counts; // in order of bytes: the first of equals wins
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t j = 0; j + 1 < parts[i].size(); ++j) counts[{parts[i][j], parts[i][j + 1]}] += words.count(i);
    auto best = counts.end();
    for (auto at = counts.begin(); at != counts.end(); ++at)
      if (at->second >= 2 && (best == counts.end() || at->second > best->second)) best = at;
    if (best == counts.end()) break;
    const auto [left, right] = best->first;
    for (auto& word : parts)
      for (std::size_t j = 0; j + 1 < word.size(); ++j)
        if (word[j] == left && word[j + 1] == right) {
          word[j] += right;
          word.erase(word.begin() + static_cast<std::ptrdiff_t>(j + 1));
        }
    made.push_back(left + right);
  }
  return made;
}

TEST(TrainBpe, AgreesWithTheDefinition) {
  constexpr std::array<std::string_view, 6> kLetters{"a", "b", "c", "aa", "ab", "\xe4"};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    WordCounts words;
    for (std::uint64_t number = 0; number < 60; ++number) words.add(draw(kLetters, seed, number, 12), 1 + number % 3);
    EXPECT_EQ(merged_tokens(train(words, 257 + 80)), trained_by_definition(words, 80));
  }
}

// One word of a megabyte: a merge may cost no more than its occurrences.
TEST(TrainBpe, ALongWord) {
  std::string text;
  const Random random(9, Purpose::kSample);
  for (std::uint64_t i = 0; i < 1'000'000; ++i) text += static_cast<char>('a' + random.below(i, 26));
  WordCounts words;
  words.add(text);
  EXPECT_EQ(train(words, 4096).vocab_size(), 4096U);
}

// The same merges from one file and from stdin, in batches and pieces of any size, on any number of threads.
TEST(CountWords, DependsOnTheTextAlone) {
  const store::Scratch scratch;
  std::string text;
  for (std::uint64_t number = 0; number < 3000; ++number)
    text += draw(kTricky, 21, number, 12) + (number % 50 == 0 ? "\n<|endoftext|>\n" : " word");
  store::spill(scratch / "text", text);
  for (const PreTokenizer kind : {PreTokenizer::gpt2, PreTokenizer::llama3}) {
    const auto counted = [&](const std::string& path, std::size_t batch, std::size_t piece, int threads) {
      DocumentOptions options;
      options.batch_bytes = batch;
      options.piece_bytes = piece;
      DocumentReader reader({path}, options, kind);
      const WordCounts words = count_words(reader, kind, threads, nullptr);
      std::map<std::string, std::uint64_t> counts;
      for (std::size_t i = 0; i < words.size(); ++i) counts[std::string(words.word(i))] = words.count(i);
      return std::pair{counts, digest(train(words, 600))};
    };
    const auto expected = counted(scratch / "text", 1U << 24, 1U << 24, 1);
    EXPECT_GT(expected.first.size(), 100U);
    for (const std::size_t batch : {1000, 5000, 1 << 20})
      for (const std::size_t piece : {1, 100, 100000})
        for (const int threads : {1, 3})
          EXPECT_EQ(counted(scratch / "text", batch, piece, threads), expected)
              << batch << ' ' << piece << ' ' << threads;
    EXPECT_EQ(store::through_pipe(text, [&] { return counted("-", 3000, 64, 2); }), expected);
  }
}

} // namespace
} // namespace noether::text
