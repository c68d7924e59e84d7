// Small puzzles of a few kinds: whether a model goes on as it should, or finds the sound one of two sentences likelier.
#pragma once

#include "evaluation/continuation.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace noether::evaluation {

/// Either a completion, of a prompt that should go on as expected, or a comparison of two sentences, the sound one
/// first.
struct Puzzle {
  std::string kind;
  std::string prompt, expected; ///< of a completion
  std::string sound, unsound;   ///< of a comparison
  bool compares = false;
  std::int64_t line = 0; ///< in its file
};

struct Puzzles {
  std::string name; ///< of the file, for messages
  std::vector<Puzzle> items;
};

/// Reads JSON objects, one a line, - for stdin:
///   {"kind": "copy", "prompt": "A lamp. A", "expected": " lamp"}
///   {"kind": "syntax", "compare": ["He is here.", "He are here."]}
/// Throws Error, with the number of the line, for one that is neither.
Puzzles read_puzzles(const std::string& path);

struct PuzzleScore {
  /// Of a completion: each token of what was expected.
  std::vector<TokenScore> expected;
  /// Of a comparison: nats a token.
  double sound_loss = 0, unsound_loss = 0;
  bool truncated = false; ///< the model's context is shorter than the puzzle
};

/// The scores, by item. Throws Error for a puzzle that cannot be asked: "puzzles.jsonl:3: ...".
std::vector<PuzzleScore> score_puzzles(architecture::Checkpoint& checkpoint, const Puzzles& puzzles,
                                       const ScoringOptions& options, Reporter& reporter);

/// What some items come to: means over those that are completions, and over those that are comparisons. Of a single
/// item, its own figures.
struct PuzzleFigures {
  std::int64_t items = 0, truncated = 0;
  struct Completions {
    double rank;            ///< of the first expected token, 1 for the likeliest
    double top1, top5;      ///< the share of ranks up to 1, up to 5
    Mean first_token_loss;  ///< nats; over all completions it is the score of arXiv 2601.22257
    double completion_loss; ///< nats a token of an item's expected text
  };
  std::optional<Completions> completions; ///< nothing where no item is one
  struct Comparisons {
    double sound_loss, unsound_loss; ///< nats a token
    double perplexity_ratio;         ///< of the unsound sentence to the sound one; of several items the geometric mean
    double sound_lower;              ///< the share of items whose sound sentence has the lower loss
  };
  std::optional<Comparisons> comparisons;
};
PuzzleFigures figures(std::span<const Puzzle> puzzles, std::span<const PuzzleScore> scores);

struct KindFigures {
  std::string kind;
  PuzzleFigures figures;
};
/// In the order in which the kinds first come.
std::vector<KindFigures> figures_by_kind(std::span<const Puzzle> puzzles, std::span<const PuzzleScore> scores);

} // namespace noether::evaluation
