#include "text/pre_tokenizer.h"

#include "text/reference.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>

namespace noether::text {
namespace {

std::vector<std::size_t> ends(PreTokenizer kind, std::string_view text) {
  std::vector<std::size_t> positions;
  for_each_word(kind, text, [&](const char*, const char* end) {
    positions.push_back(static_cast<std::size_t>(end - text.data()));
  });
  return positions;
}

// Cuts by the regular expressions of two other programs (tests/golden/text/make_pre_tokenizer.py), on 632 strings.
TEST(PreTokenizer, CutsAsTheRegularExpressionsDo) {
  std::ifstream file(NOETHER_TEST_DATA "/text/pre_tokenizer.jsonl");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const nlohmann::json expected = nlohmann::json::parse(line);
    const std::string text = from_base64(expected["text_b64"].get<std::string>());
    for (const PreTokenizer kind : {PreTokenizer::gpt2, PreTokenizer::llama3}) {
      std::vector<std::size_t> lengths;
      for_each_word(kind, text, [&](const char* begin, const char* end) {
        lengths.push_back(static_cast<std::size_t>(end - begin));
      });
      EXPECT_EQ(lengths, expected[std::string(name_of(kind))].get<std::vector<std::size_t>>())
          << name_of(kind) << ": " << line;
    }
  }
  EXPECT_EQ(lines, 632);
}

// A malformed byte belongs with punctuation, whatever stands around it.
TEST(PreTokenizer, MalformedBytesAreOther) {
  EXPECT_EQ(ends(PreTokenizer::gpt2, "abc\xff!def"), (std::vector<std::size_t>{3, 5, 8}));
  EXPECT_EQ(ends(PreTokenizer::gpt2, "1\xe4\xbd 2"), (std::vector<std::size_t>{1, 3, 5}));
  EXPECT_EQ(ends(PreTokenizer::llama3, "\xff"
                                       "abc\xff\n"),
            (std::vector<std::size_t>{4, 6}));
}

// Words of the two parts are words of the whole, at every position that safe_cut finds, in 4000 strings of a printed
// seed; and there are such positions.
TEST(PreTokenizer, SafeCutsChangeNoWord) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  for (const PreTokenizer kind : {PreTokenizer::gpt2, PreTokenizer::llama3}) {
    std::size_t cuts = 0;
    for (std::uint64_t number = 0; number < 4000; ++number) {
      const std::string text = draw(kTricky, kSeed, number, 14);
      const std::vector<std::size_t> whole = ends(kind, text);
      std::set<std::size_t> forward, backward;
      for (std::size_t p = 0; (p = safe_cut(kind, text, p)) != std::string_view::npos; ++p) {
        forward.insert(p);
        std::vector<std::size_t> parts = ends(kind, std::string_view(text).substr(0, p));
        for (const std::size_t end : ends(kind, std::string_view(text).substr(p))) parts.push_back(p + end);
        ASSERT_EQ(parts, whole) << nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
                                << " at " << p;
      }
      for (std::size_t p = text.size(); (p = safe_cut_before(kind, text, p)) != std::string_view::npos; --p)
        backward.insert(p);
      ASSERT_EQ(forward, backward);
      cuts += forward.size();
    }
    EXPECT_GT(cuts, 1000U);
  }
}

// A scanner that looked at a character more than a few times would take hours here: a megabyte without a border, of
// every kind.
TEST(PreTokenizer, HostileTextTakesLinearTime) {
  for (const std::string_view unit : {"a", " ", "\n", "^", "1", "'", "\u200d", "\u3000", "\xff", " \n", "\r\n ", "\n\t",
                                      "'s", " '", "\U0001F469\u200d"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    for (const std::string_view tail : {"", "x", " ", "\n"})
      for (const PreTokenizer kind : {PreTokenizer::gpt2, PreTokenizer::llama3})
        EXPECT_EQ(ends(kind, text + std::string(tail)).back(), text.size() + tail.size());
  }
}

} // namespace
} // namespace noether::text
