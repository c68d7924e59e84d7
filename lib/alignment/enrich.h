// Which classes of tokens a head prefers: those that are more often among its best aligned tokens than in the
// vocabulary. Source: arXiv 2601.22257, the analysis of preferred tokens (the method note's section 6).
#pragma once

#include "alignment/classes.h"
#include "alignment/scores.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace noether::alignment {

/// The ids of the `count` largest values among those of `candidates`, largest first; with `least` the smallest,
/// smallest first. Equal values: the smaller id first.
std::vector<std::int64_t> extreme_ids(std::span<const float> values, std::span<const std::int64_t> candidates,
                                      std::int64_t count, bool least);

/// Ids of the tokenizer's ordinary tokens: not the special ones, and none that pads the model's vocabulary.
std::vector<std::int64_t> ordinary_ids(const text::Tokenizer& tokenizer);

struct EnrichOptions {
  std::int64_t top = 100; ///< tokens at each end
  std::int64_t null = 20; ///< random directions that the same is counted for
  std::uint64_t seed = 0; ///< of those
  Embedding embedding = Embedding::raw;
};

/// A class at one end of one head's list.
struct Enrichment {
  std::int64_t layer = 0, head = 0;
  bool top = true;
  std::size_t of = 0;       ///< the class
  std::int64_t members = 0; ///< in the vocabulary
  std::int64_t found = 0;   ///< among options.top tokens
  double expected = 0;      ///< of a random choice of tokens
  double log2 = 0;          ///< of found / expected; -inf when none was found
  double p = 1;             ///< two-sided, hypergeometric
  double q = 1;             ///< over all rows of the table
  /// Of random directions of the same length: how many are found on average, and how often as many as here.
  std::optional<double> null_found{}, null_p{};
};

/// How much a head's ends are what the published analysis finds in models that solve puzzles: log2 enrichment of
/// `structural` tokens at the top, plus that of `byte_fragment` at the bottom. With half a token added to each count,
/// so that it is always a number.
struct SemanticScore {
  std::int64_t layer = 0, head = 0;
  double structural = 0, fragments = 0;
  double value() const { return structural + fragments; }
};

struct EnrichmentTable {
  std::vector<Enrichment> rows;     ///< by layer, head, end and class; classes without members are left out
  std::vector<SemanticScore> heads; ///< by layer and head
  std::vector<double> null_scores;  ///< means over heads, of each random direction
  double score() const;             ///< the mean over heads
  double standard_error() const;    ///< of that mean, over heads
};

/// directions: [layers, heads, head_width]. Throws Error when options.top is more than half of the vocabulary.
EnrichmentTable enrich(const models::Model& model, const text::Tokenizer& tokenizer,
                       const std::vector<TokenClass>& classes, const at::Tensor& directions,
                       const EnrichOptions& options, const std::string& name);

} // namespace noether::alignment
