// The puzzles of arXiv 2601.22257 as data: which items and kinds there are is the file's business.
#include "evaluation/puzzles.h"

#include "base/error.h"
#include "store/byte_input.h"
#include "text/json_lines.h"

#include <algorithm>
#include <cmath>

namespace noether::evaluation {
namespace {

Puzzle puzzle_of(const text::JsonLine& line) {
  Puzzle puzzle;
  puzzle.line = line.line;
  puzzle.kind = line.string("kind");
  if (puzzle.kind.empty()) throw Error("{}: the field kind is empty", line.where);
  puzzle.compares = line.object.contains("compare");
  if (puzzle.compares) {
    for (const char* other : {"prompt", "expected"})
      if (line.object.contains(other)) throw Error("{}: compare and {} exclude each other", line.where, other);
    const nlohmann::json& compare = line.field("compare");
    if (!compare.is_array() || compare.size() != 2 || !compare[0].is_string() || !compare[1].is_string())
      throw Error("{}: expected two sentences in field compare, the sound one first", line.where);
    puzzle.sound = compare[0].get<std::string>();
    puzzle.unsound = compare[1].get<std::string>();
  } else {
    puzzle.prompt = line.string("prompt");
    puzzle.expected = line.string("expected");
    if (puzzle.expected.empty()) throw Error("{}: the field expected is empty", line.where);
  }
  return puzzle;
}

/// The mean of what `value` gives for each of the items.
template <class Value> Mean mean_over(const std::vector<const PuzzleScore*>& items, Value value) {
  std::vector<double> values;
  for (const PuzzleScore* item : items) values.push_back(value(*item));
  return mean_of(values);
}

double loss_a_token(const std::vector<TokenScore>& scores) {
  return total_loss(scores) / static_cast<double>(scores.size());
}

} // namespace

Puzzles read_puzzles(const std::string& path) {
  Puzzles puzzles{store::input_name(path), {}};
  text::for_each_json_line(path, [&](const text::JsonLine& line) { puzzles.items.push_back(puzzle_of(line)); });
  if (puzzles.items.empty()) throw Error("{}: it holds no puzzles", puzzles.name);
  return puzzles;
}

std::vector<PuzzleScore> score_puzzles(architecture::Checkpoint& checkpoint, const Puzzles& puzzles,
                                       const ScoringOptions& options, Reporter& reporter) {
  ContinuationScorer scorer(checkpoint, options);
  std::vector<std::vector<Continuation>> asked;
  for (const Puzzle& puzzle : puzzles.items) {
    const std::string where = fmt::format("{}:{}", puzzles.name, puzzle.line);
    if (puzzle.compares)
      asked.push_back({scorer.sentence(puzzle.sound, where), scorer.sentence(puzzle.unsound, where)});
    else
      asked.push_back({scorer.continuation(puzzle.prompt, puzzle.expected, where)});
  }
  std::vector<PuzzleScore> scores(asked.size());
  scorer.for_each_item(static_cast<std::int64_t>(asked.size()), reporter, [&](std::int64_t i) {
    const std::vector<Continuation>& one = asked[static_cast<std::size_t>(i)];
    PuzzleScore& score = scores[static_cast<std::size_t>(i)];
    std::vector<std::vector<TokenScore>> found = scorer.score(one, i);
    if (found.size() == 2) {
      score.sound_loss = loss_a_token(found[0]);
      score.unsound_loss = loss_a_token(found[1]);
    } else {
      score.expected = std::move(found[0]);
    }
    for (const Continuation& text : one) score.truncated = score.truncated || text.truncated;
  });
  return scores;
}

PuzzleFigures figures(std::span<const Puzzle> puzzles, std::span<const PuzzleScore> scores) {
  PuzzleFigures out;
  std::vector<const PuzzleScore*> completions, comparisons;
  for (std::size_t i = 0; i < puzzles.size(); ++i) {
    ++out.items;
    out.truncated += scores[i].truncated ? 1 : 0;
    (puzzles[i].compares ? comparisons : completions).push_back(&scores[i]);
  }
  const auto rank = [](const PuzzleScore& score) { return static_cast<double>(score.expected.front().rank); };
  const auto gain = [](const PuzzleScore& score) { return score.unsound_loss - score.sound_loss; };
  if (!completions.empty())
    out.completions = PuzzleFigures::Completions{
        mean_over(completions, rank).value,
        mean_over(completions, [&](const PuzzleScore& score) { return rank(score) <= 1 ? 1.0 : 0.0; }).value,
        mean_over(completions, [&](const PuzzleScore& score) { return rank(score) <= 5 ? 1.0 : 0.0; }).value,
        mean_over(completions, [](const PuzzleScore& score) { return score.expected.front().loss; }),
        mean_over(completions, [](const PuzzleScore& score) { return loss_a_token(score.expected); }).value};
  if (!comparisons.empty())
    out.comparisons = PuzzleFigures::Comparisons{
        mean_over(comparisons, [](const PuzzleScore& score) { return score.sound_loss; }).value,
        mean_over(comparisons, [](const PuzzleScore& score) { return score.unsound_loss; }).value,
        std::exp(mean_over(comparisons, gain).value),
        mean_over(comparisons, [&](const PuzzleScore& score) { return gain(score) > 0 ? 1.0 : 0.0; }).value};
  return out;
}

std::vector<KindFigures> figures_by_kind(std::span<const Puzzle> puzzles, std::span<const PuzzleScore> scores) {
  std::vector<KindFigures> out;
  for (const Puzzle& puzzle : puzzles) {
    const auto same = [&](const auto& other) { return other.kind == puzzle.kind; };
    if (std::any_of(out.begin(), out.end(), same)) continue;
    std::vector<Puzzle> some;
    std::vector<PuzzleScore> their;
    for (std::size_t i = 0; i < puzzles.size(); ++i)
      if (same(puzzles[i])) {
        some.push_back(puzzles[i]);
        their.push_back(scores[i]);
      }
    out.push_back({puzzle.kind, figures(some, their)});
  }
  return out;
}

} // namespace noether::evaluation
