// Classes of tokens as a reader would sort them, and enrichment in a model whose preferences are built in.
#include "alignment/enrich.h"

#include "alignment/directions.h"
#include "base/error.h"
#include "small.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

namespace noether::alignment {
namespace {

const std::vector<std::string> kWords{" the", "The",  " And", " river", "ing", " 1999",  "42",  "\n\n", " (",
                                      "...",  "NASA", " of",  "é",      "ßen", " Paris", " at", "Of",   " running"};

/// Names of the classes that a token is in.
std::set<std::string> classes_with(const std::vector<TokenClass>& classes, std::size_t id) {
  std::set<std::string> names;
  for (const TokenClass& one : classes)
    if (one.members[id] && !one.name.ends_with("frequency")) names.insert(one.name);
  return names;
}

TEST(Classes, AreThoseThatAReaderSees) {
  const text::Tokenizer tokenizer = words_tokenizer(kWords);
  const std::vector<TokenClass> classes = classes_of(tokenizer);
  using Names = std::set<std::string>;
  const auto of = [&](const std::string& word) {
    for (std::size_t id = tokenizer.tokens.size(); id-- > 0;)
      if (tokenizer.tokens[id] == word) return classes_with(classes, id);
    return Names{"no such token"};
  };
  EXPECT_EQ(of(" the"), (Names{"lowercase", "determiner", "function_word", "word_start", "short"}));
  EXPECT_EQ(of("The"), (Names{"capitalised", "determiner", "function_word", "continuation", "short", "sentence_start",
                              "structural"}));
  EXPECT_EQ(of(" river"), (Names{"lowercase", "content_word", "word_start", "medium"}));
  EXPECT_EQ(of(" running"), (Names{"lowercase", "content_word", "word_start", "long"}));
  EXPECT_EQ(of("ing"), (Names{"lowercase", "continuation", "short"}));
  EXPECT_EQ(of(" 1999"), (Names{"digits", "word_start", "medium"}));
  EXPECT_EQ(of("\n\n"), (Names{"line_end", "structural", "short"}));
  EXPECT_EQ(of(" ("), (Names{"punctuation", "structural", "word_start", "single_character"}));
  EXPECT_EQ(of("NASA"), (Names{"uppercase", "continuation", "medium"}));
  EXPECT_EQ(of(" Paris"), (Names{"capitalised", "content_word", "word_start", "medium"}));
  EXPECT_EQ(of("é"), (Names{"lowercase", "continuation", "single_character"}));
  EXPECT_EQ(of("\xc3"), (Names{"byte_fragment"}));
  EXPECT_EQ(of("<|endoftext|>"), Names{});
}

TEST(Classes, OfAUserNameTokensAsTheyAreShown) {
  const text::Tokenizer tokenizer = words_tokenizer(kWords);
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("noether-classes-{}", getpid());
  const auto add = [&](const std::string& text) {
    std::ofstream(path) << text;
    std::vector<TokenClass> classes = classes_of(tokenizer);
    add_classes(path, tokenizer, classes);
    return classes;
  };
  const auto classes = add("place\t␣Paris\nplace\t␣river\n\nend\t\\n\\n\n");
  EXPECT_EQ(
      std::count(class_named(classes, "place").members.begin(), class_named(classes, "place").members.end(), true), 2);
  EXPECT_TRUE(class_named(classes, "end").members[256 + 7]);
  const auto message = [&](const std::string& text) -> std::string {
    try {
      add(text);
    } catch (const Error& error) {
      return std::string(error.what()).substr(path.size());
    }
    return "";
  };
  EXPECT_TRUE(message("place Paris\n").starts_with(":1: expected CLASS"));
  EXPECT_TRUE(message("place\t␣Paris\nplace\tNowhere\n").starts_with(":2: no token is shown as Nowhere"));
  EXPECT_TRUE(message("digits\t␣Paris\n").starts_with(":1: there is a class digits already"));
  std::filesystem::remove(path);
}

/// Raw keys are W_K times embeddings: with W_K the unit matrix of a head's place, a token's key is a piece of its
/// embedding, and preferences can be written there.
struct Built : Small {
  text::Tokenizer tokenizer = words_tokenizer([] {
    std::vector<std::string> words = kWords;
    while (words.size() < 43) words.push_back(fmt::format("filler{}", words.size()));
    return words;
  }());
  std::vector<TokenClass> classes = classes_of(tokenizer);

  Built() {
    auto values = checkpoint.parameters.span();
    for (const architecture::Parameter& p : checkpoint.layout) {
      float* const at = values.data() + p.offset;
      if (p.name.ends_with("W_K"))
        for (std::int64_t i = 0; i < p.count; ++i) at[i] = i / 32 == i % 32 ? 1 : 0;
      if (p.name != "embedding/tokens") continue;
      for (std::int64_t id = 0; id < 300; ++id) {
        const auto in = [&](const char* name) {
          return class_named(classes, name).members[static_cast<std::size_t>(id)];
        };
        for (std::int64_t j = 0; j < 32; ++j)
          at[id * 32 + j] += in("structural") ? 3.0F : in("byte_fragment") ? -3.0F : 0;
      }
    }
  }
};

TEST(Enrichment, FindsWhatWasBuiltIn) {
  const Built built;
  const at::Tensor directions = bias_directions(built.checkpoint, built.model);
  const EnrichmentTable table =
      enrich(built.model, built.tokenizer, built.classes, directions, {.top = 20, .null = 30}, "x");
  const auto place = static_cast<std::size_t>(&class_named(built.classes, "structural") - built.classes.data());
  int seen = 0;
  for (const Enrichment& row : table.rows) {
    if (row.of != place || !row.top) continue;
    ++seen;
    EXPECT_EQ(row.found, 20); // all of the best
    EXPECT_NEAR(row.log2, std::log2(299.0 / static_cast<double>(row.members)), 1e-12);
    EXPECT_LT(row.q, 1e-9);
    EXPECT_LT(*row.null_found, 19); // a random direction does not always find them
  }
  EXPECT_EQ(seen, 8);
  EXPECT_EQ(std::ssize(table.heads), 8);
  EXPECT_GT(table.score(), 2.5);
  double worst = -1e9;
  for (const double score : table.null_scores) worst = std::max(worst, score);
  EXPECT_GT(table.score(), worst);
  EXPECT_THROW(enrich(built.model, built.tokenizer, built.classes, directions, {.top = 150}, "x"), Error);
}

TEST(Enrichment, IsTheSameForAnyScaleOfTheDirection) {
  const Built built;
  const at::Tensor directions = bias_directions(built.checkpoint, built.model);
  const EnrichOptions options{.top = 30, .null = 3};
  const auto a = enrich(built.model, built.tokenizer, built.classes, directions, options, "x"),
             b = enrich(built.model, built.tokenizer, built.classes, directions * 8, options, "x");
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (std::size_t i = 0; i < a.rows.size(); ++i) EXPECT_EQ(a.rows[i].found, b.rows[i].found);
}

TEST(Extremes, AreSortedAndTiesGoByTheSmallerId) {
  const std::vector<float> values{1, 5, 5, -2, 0, 7};
  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5}, some{0, 2, 1};
  EXPECT_EQ(extreme_ids(values, all, 3, false), (std::vector<std::int64_t>{5, 1, 2}));
  EXPECT_EQ(extreme_ids(values, all, 2, true), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(extreme_ids(values, some, 9, false), (std::vector<std::int64_t>{1, 2, 0}));
}

} // namespace
} // namespace noether::alignment
