#include "text/bpe.h"

#include "base/error.h"
#include "text/bpe_train.h"
#include "text/pre_tokenizer.h"
#include "text/reference.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace noether::text {
namespace {

Tokenizer bytes_only() {
  Tokenizer tokenizer;
  for (int byte = 0; byte < 256; ++byte) tokenizer.tokens.emplace_back(1, static_cast<char>(byte));
  return tokenizer;
}

void add_merge(Tokenizer& tokenizer, std::uint32_t left, std::uint32_t right) {
  tokenizer.merges.emplace_back(left, right);
  tokenizer.tokens.push_back(tokenizer.tokens[left] + tokenizer.tokens[right]);
}

/// Merges from random text, so that words take many steps.
Tokenizer trained(std::uint64_t seed, PreTokenizer kind) {
  WordCounts words;
  for (std::uint64_t number = 0; number < 300; ++number) {
    const std::string text = draw(kTricky, seed, number, 40);
    for_each_word(kind, text, [&](const char* begin, const char* end) {
      words.add({begin, static_cast<std::size_t>(end - begin)});
    });
  }
  TrainOptions options;
  options.vocab_size = 700;
  options.pre_tokenizer = kind;
  return train_bpe(words, options);
}

/// By the definition: the earliest merge in the list, leftmost, until none applies.
std::vector<std::uint32_t> merged_by_definition(const Tokenizer& tokenizer, std::string_view word) {
  std::vector<std::uint32_t> ids;
  for (const char byte : word) ids.push_back(static_cast<unsigned char>(byte));
  for (;;) {
    std::size_t best = tokenizer.merges.size(), at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = std::find(tokenizer.merges.begin(), tokenizer.merges.end(), std::pair{ids[i], ids[i + 1]});
      const auto rank = static_cast<std::size_t>(found - tokenizer.merges.begin());
      if (rank < best) best = rank, at = i;
    }
    if (best == tokenizer.merges.size()) return ids;
    ids[at] = static_cast<std::uint32_t>(256 + best);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at + 1));
  }
}

TEST(Encoder, MergesTheEarliestInTheListFirstAndThenTheLeftmost) {
  Tokenizer tokenizer = bytes_only();
  add_merge(tokenizer, 'b', 'c'); // 256
  add_merge(tokenizer, 'a', 'b'); // 257
  add_merge(tokenizer, 'a', 'a'); // 258
  Encoder encoder(tokenizer);
  EXPECT_EQ(encoder.encode("abc"), (std::vector<std::uint32_t>{'a', 256}));
  EXPECT_EQ(encoder.encode("aab"), (std::vector<std::uint32_t>{'a', 257}));
  EXPECT_EQ(encoder.encode("aaaaa"), (std::vector<std::uint32_t>{258, 258, 'a'}));
  EXPECT_EQ(encoder.encode(""), std::vector<std::uint32_t>{});
}

// A token that no merge can reach is not used, unless the tokenizer takes whole words first.
TEST(Encoder, UnreachableTokensOnlyAsWholeWords) {
  Tokenizer tokenizer = bytes_only();
  tokenizer.tokens.emplace_back("xyz");
  EXPECT_EQ(Encoder(tokenizer).encode("xyz"), (std::vector<std::uint32_t>{'x', 'y', 'z'}));
  tokenizer.whole_words = true;
  EXPECT_EQ(Encoder(tokenizer).encode("xyz"), std::vector<std::uint32_t>{256});
  EXPECT_EQ(Encoder(tokenizer).encode("xyzx"), (std::vector<std::uint32_t>{'x', 'y', 'z', 'x'}));
}

TEST(Encoder, AgreesWithTheDefinitionAndIsReversible) {
  for (const std::uint64_t seed : {1, 2}) {
    for (const PreTokenizer kind : {PreTokenizer::gpt2, PreTokenizer::llama3}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << name_of(kind));
      const Tokenizer tokenizer = trained(seed, kind);
      ASSERT_GT(tokenizer.merges.size(), 100U);
      Encoder encoder(tokenizer);
      for (std::uint64_t number = 0; number < 400; ++number) {
        const std::string text = draw(kTricky, seed + 100, number, 30);
        std::vector<std::uint32_t> expected;
        for (const std::string_view word : encoder.words(text)) {
          const auto ids = merged_by_definition(tokenizer, word);
          expected.insert(expected.end(), ids.begin(), ids.end());
        }
        ASSERT_EQ(encoder.encode(text), expected) << number;
        ASSERT_EQ(encoder.encode(text), expected) << number << ", from the cache";
        ASSERT_EQ(decode(tokenizer, expected.data(), expected.size()), text);
      }
    }
  }
}

// Longer than the plain scan takes: the heap must give the same.
TEST(Encoder, LongWordsAgreeWithTheDefinition) {
  const Tokenizer tokenizer = trained(5, PreTokenizer::gpt2);
  Encoder encoder(tokenizer);
  constexpr std::array<std::string_view, 5> kLetters{"a", "b", "Z", "\u00e9", "\u4f60"};
  for (std::uint64_t number = 0; number < 60; ++number) {
    const std::string word = draw(kLetters, 5, number, 400);
    ASSERT_EQ(encoder.encode(word), merged_by_definition(tokenizer, word)) << number;
  }
}

TEST(Encoder, AnyBytesComeBack) {
  const Tokenizer tokenizer = trained(3, PreTokenizer::llama3);
  Encoder encoder(tokenizer);
  for (std::uint64_t number = 0; number < 300; ++number) {
    const Random random(17, Purpose::kSample, number);
    std::string bytes;
    for (std::uint64_t i = 0; i < random.below(0, 300); ++i) bytes += static_cast<char>(random.bits(i + 1));
    const auto ids = encoder.encode(bytes);
    ASSERT_EQ(decode(tokenizer, ids.data(), ids.size()), bytes) << number;
  }
}

// Quadratic work would take hours.
TEST(Encoder, MegabytesWithoutABorder) {
  Tokenizer tokenizer = bytes_only();
  for (const char c : std::string_view("a \n^")) {
    auto last = static_cast<std::uint32_t>(static_cast<unsigned char>(c));
    for (int doubling = 0; doubling < 5; ++doubling) {
      add_merge(tokenizer, last, last);
      last = tokenizer.vocab_size() - 1;
    }
  }
  Encoder encoder(tokenizer);
  for (const std::string_view unit : {"a", " ", "\n", "^", "\u200d", "\U0001F469\u200d", "ab", "\xff"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    const auto ids = encoder.encode(text);
    EXPECT_EQ(decode(tokenizer, ids.data(), ids.size()), text);
    if (unit.size() == 1 && unit != "\xff") {
      EXPECT_EQ(ids.size(), text.size() / 32) << unit;
    }
  }
}

TEST(Encoder, SpecialSpellingsArePlainTextUnlessAskedFor) {
  Tokenizer tokenizer = bytes_only();
  tokenizer.tokens.insert(tokenizer.tokens.end(), {"<|e|>", "<|e|>x", "<|a b|>"});
  tokenizer.special = {{"<|e|>", 256}, {"<|e|>x", 257}, {"<|a b|>", 258}};
  Encoder encoder(tokenizer);
  EXPECT_TRUE(encoder.blanks_in_special());
  EXPECT_EQ(encoder.encode("<|e|>").size(), 5U);
  EXPECT_EQ(encoder.encode("<|e|>xy<|a b|><|e|", true),
            (std::vector<std::uint32_t>{257, 'y', 258, '<', '|', 'e', '|'}));
  EXPECT_EQ(encoder.encode("<|e|>", true), std::vector<std::uint32_t>{256});
}

// A copy encodes alike, and its cache is its own: the one that it was copied from may be gone.
TEST(Encoder, CopiesShareTheTables) {
  std::vector<Encoder> encoders;
  {
    const Encoder first(trained(4, PreTokenizer::gpt2));
    encoders.push_back(first);
    encoders.push_back(first);
  }
  EXPECT_EQ(encoders[0].encode("aa bb"), encoders[1].encode("aa bb"));
}

TEST(Decode, RefusesAnIdBeyondTheVocabulary) {
  const std::uint32_t id = 256;
  EXPECT_THROW(decode(bytes_only(), &id, 1), Error);
}

} // namespace
} // namespace noether::text
