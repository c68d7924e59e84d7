// Two checkpoints of one vocabulary, head by head.
#pragma once

#include "alignment/scores.h"

namespace noether::alignment {

struct HeadComparison {
  std::int64_t layer = 0, head = 0;
  double correlation = 0;                   ///< Spearman's, of the alignments of all tokens
  std::int64_t overlap = 0;                 ///< tokens that are among the best `top` of both
  double spread_a = 0, spread_b = 0;        ///< standard deviation of the alignments
  std::vector<std::int64_t> best_a, best_b; ///< the best `top`
};

/// a, b: of the same vocabulary, layers and heads. candidates: the tokens that count.
std::vector<HeadComparison> compare(const Scores& a, const Scores& b, std::span<const std::int64_t> candidates,
                                    std::int64_t top);

} // namespace noether::alignment
