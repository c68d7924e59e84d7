#include "evaluation/puzzles.h"

#include "evaluation/fixtures.h"
#include "store/scratch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace noether::evaluation {
namespace {

using store::message;
using store::Scratch;
using store::spill;

Puzzles read(const std::string& text) {
  const Scratch scratch;
  spill(scratch / "x.jsonl", text);
  Puzzles puzzles = read_puzzles(scratch / "x.jsonl");
  puzzles.name = "x.jsonl";
  return puzzles;
}

std::string complaint(const std::string& text) {
  const std::string said = message([&] { read(text); });
  return said.substr(said.find("x.jsonl"));
}

std::vector<PuzzleScore> score(architecture::Checkpoint& checkpoint, const Puzzles& puzzles,
                               const ScoringOptions& options = {}) {
  Reporter quiet("test", Verbosity::quiet, ProgressMode::no);
  return score_puzzles(checkpoint, puzzles, options, quiet);
}

// arXiv 2601.22257: eight kinds, 19 items, 14 of them completions.
TEST(Puzzles, ThoseThatComeWithNoetherHaveThePublishedKinds) {
  const Puzzles puzzles = read_puzzles(std::string(NOETHER_TEST_DATA) + "/../../share/noether/puzzles.jsonl");
  std::map<std::string, int> completions, comparisons;
  for (const Puzzle& puzzle : puzzles.items) ++(puzzle.compares ? comparisons : completions)[puzzle.kind];
  EXPECT_EQ(completions, (std::map<std::string, int>{{"pattern_numeric", 4},
                                                     {"pattern_alpha", 2},
                                                     {"retrieval_near", 2},
                                                     {"retrieval_far", 2},
                                                     {"simple_inference", 2},
                                                     {"copy", 2}}));
  EXPECT_EQ(comparisons, (std::map<std::string, int>{{"negation", 3}, {"syntax", 2}}));
  for (const Puzzle& puzzle : puzzles.items) {
    if (puzzle.compares) continue;
    EXPECT_EQ(puzzle.expected[0], ' ') << puzzle.prompt; // a word of its own, as tokenizers cut it
    EXPECT_NE(puzzle.prompt.back(), ' ');
  }
  // What is to be found is there.
  for (const Puzzle& puzzle : puzzles.items)
    if (puzzle.kind.starts_with("retrieval") || puzzle.kind == "copy") {
      EXPECT_NE(puzzle.prompt.find(puzzle.expected), std::string::npos) << puzzle.prompt;
    }
}

TEST(Puzzles, NamesTheLineThatIsWrong) {
  const std::string good = "{\"kind\": \"a\", \"prompt\": \"x\", \"expected\": \"y\"}\n";
  EXPECT_EQ(complaint(good + "{\"kind\": \"a\", \"prompt\": \"x\"}"),
            "x.jsonl:2: no field expected (found: kind, prompt)");
  EXPECT_EQ(complaint("\n{\"prompt\": \"x\", \"expected\": \"y\"}"),
            "x.jsonl:2: no field kind (found: expected, prompt)");
  EXPECT_EQ(complaint("{\"kind\": \"\", \"prompt\": \"x\", \"expected\": \"y\"}"),
            "x.jsonl:1: the field kind is empty");
  EXPECT_EQ(complaint("{\"kind\": \"a\", \"prompt\": \"x\", \"expected\": \"\"}"),
            "x.jsonl:1: the field expected is empty");
  EXPECT_EQ(complaint("{\"kind\": \"a\", \"prompt\": 1, \"expected\": \"y\"}"),
            "x.jsonl:1: expected a string in field prompt, found number");
  for (const char* compare : {"\"x\"", "[\"x\"]", "[\"x\", 1]", "[\"x\", \"y\", \"z\"]"})
    EXPECT_EQ(complaint(fmt::format("{{\"kind\": \"a\", \"compare\": {}}}", compare)),
              "x.jsonl:1: expected two sentences in field compare, the sound one first");
  EXPECT_EQ(complaint("{\"kind\": \"a\", \"compare\": [\"x\", \"y\"], \"expected\": \"y\"}"),
            "x.jsonl:1: compare and expected exclude each other");
  EXPECT_EQ(complaint(good + "{kind}"), "x.jsonl:2: not valid JSON at byte 2 of the line");
  EXPECT_EQ(complaint("\n"), "x.jsonl: it holds no puzzles");
}

// Each token is as likely wherever it stands, so all figures can be told. Ids beyond those named have logit 0.
TEST(Puzzles, FiguresAreThoseOfAUnigramModel) {
  architecture::Checkpoint checkpoint =
      unigram_checkpoint(tokenizer(300), {{'a', 5}, {'b', 4}, {'c', 3}, {'d', 2}, {'e', 1.5}, {'f', 1}});
  const double total =
      294 + std::exp(5.0) + std::exp(4.0) + std::exp(3.0) + std::exp(2.0) + std::exp(1.5) + std::exp(1.0);
  const auto loss = [&](double logit) { return std::log(total) - logit; };
  const Puzzles puzzles = read("{\"kind\": \"k\", \"prompt\": \"xyz\", \"expected\": \"ac\"}\n"
                               "{\"kind\": \"s\", \"compare\": [\"xaab\", \"xfd\"]}\n"
                               "{\"kind\": \"k\", \"prompt\": \"xyz\", \"expected\": \"e\"}\n"
                               "{\"kind\": \"m\", \"prompt\": \"xyz\", \"expected\": \"ff\"}\n"
                               "{\"kind\": \"s\", \"compare\": [\"xf\", \"xa\"]}\n");
  const std::vector<PuzzleScore> scores = score(checkpoint, puzzles);
  const std::span<const Puzzle> items = puzzles.items;

  const PuzzleFigures first = figures(items.first(1), std::span(scores).first(1));
  EXPECT_EQ(first.items, 1);
  EXPECT_FALSE(first.comparisons);
  EXPECT_EQ(first.completions->rank, 1);
  EXPECT_EQ(first.completions->top1, 1);
  EXPECT_NEAR(first.completions->first_token_loss.value, loss(5), 1e-5);
  EXPECT_FALSE(first.completions->first_token_loss.standard_error);
  EXPECT_NEAR(first.completions->completion_loss, (loss(5) + loss(3)) / 2, 1e-5);

  // Without anything before it, the x is not scored.
  const PuzzleFigures second = figures(items.subspan(1, 1), std::span(scores).subspan(1, 1));
  EXPECT_FALSE(second.completions);
  EXPECT_NEAR(second.comparisons->sound_loss, loss((5 + 5 + 4) / 3.0), 1e-5);
  EXPECT_NEAR(second.comparisons->unsound_loss, loss((1 + 2) / 2.0), 1e-5);
  EXPECT_NEAR(second.comparisons->perplexity_ratio, std::exp(14 / 3.0 - 1.5), 1e-3);
  EXPECT_EQ(second.comparisons->sound_lower, 1);

  const PuzzleFigures all = figures(items, scores);
  EXPECT_EQ(all.items, 5);
  EXPECT_EQ(all.truncated, 0);
  EXPECT_DOUBLE_EQ(all.completions->rank, (1 + 5 + 6) / 3.0);
  EXPECT_DOUBLE_EQ(all.completions->top1, 1 / 3.0);
  EXPECT_DOUBLE_EQ(all.completions->top5, 2 / 3.0);
  EXPECT_NEAR(all.completions->first_token_loss.value, loss((5 + 1.5 + 1) / 3), 1e-5);
  // Of 5, 1.5 and 1 the mean is 2.5, and the squares of what they differ by are 6.25 + 1 + 2.25 = 9.5.
  EXPECT_NEAR(*all.completions->first_token_loss.standard_error, std::sqrt(9.5 / 6), 1e-5);
  EXPECT_NEAR(all.completions->completion_loss, loss((4 + 1.5 + 1) / 3), 1e-5);
  EXPECT_NEAR(all.comparisons->perplexity_ratio, std::exp((14 / 3.0 - 1.5 - 4) / 2), 1e-4); // the geometric mean
  EXPECT_EQ(all.comparisons->sound_lower, 0.5);

  const std::vector<KindFigures> kinds = figures_by_kind(items, scores);
  ASSERT_EQ(kinds.size(), 3U);
  EXPECT_EQ(kinds[0].kind + kinds[1].kind + kinds[2].kind, "ksm");
  EXPECT_EQ(kinds[0].figures.items, 2);
  EXPECT_EQ(kinds[0].figures.completions->rank, 3);
  EXPECT_EQ(kinds[1].figures.comparisons->sound_lower, 0.5);

  // With something before it, the x is scored too.
  const std::vector<PuzzleScore> prefixed = score(checkpoint, puzzles, ScoringOptions{.prefix = Prefix::automatic});
  EXPECT_NEAR(prefixed[1].sound_loss, loss(14 / 4.0), 1e-5);
}

TEST(Puzzles, ScoresDependNeitherOnThreadsNorOnNeighbours) {
  architecture::Config config = small_config(300);
  config.context = 200;
  config.symmetry_break = architecture::Break::qv;
  architecture::Checkpoint checkpoint = small_checkpoint(config);
  Puzzles puzzles = read_puzzles(std::string(NOETHER_TEST_DATA) + "/../../share/noether/puzzles.jsonl");
  const auto one = score(checkpoint, puzzles), three = score(checkpoint, puzzles, ScoringOptions{.threads = 3});
  std::int64_t truncated = 0; // the far retrievals, at a token a byte
  for (std::size_t i = 0; i < one.size(); ++i) {
    truncated += one[i].truncated ? 1 : 0;
    EXPECT_EQ(one[i].sound_loss, three[i].sound_loss);
    EXPECT_EQ(total_loss(one[i].expected), total_loss(three[i].expected));
  }
  EXPECT_EQ(truncated, 2);
  const Puzzle last = puzzles.items.back();
  puzzles.items = {last};
  EXPECT_EQ(score(checkpoint, puzzles)[0].sound_loss, one.back().sound_loss);
  // Biases are applied: their means by default.
  EXPECT_NE(score(checkpoint, puzzles, ScoringOptions{.biases = Biases::none})[0].sound_loss, one.back().sound_loss);
}

} // namespace
} // namespace noether::evaluation
