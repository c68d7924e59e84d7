// The statistics of an enrichment table, and of one score against another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace noether::alignment {

/// Probabilities that `drawn` of `all` tokens, drawn without replacement, hold at least and at most `found` of the
/// `members` of a class: the tails of the hypergeometric distribution, summed from its terms.
struct Tails {
  double at_least = 1, at_most = 1;
};
Tails hypergeometric_tails(std::int64_t all, std::int64_t members, std::int64_t drawn, std::int64_t found);
/// Twice the smaller tail, at most 1.
double two_sided(const Tails& tails);

/// q-values: the smallest false-discovery rate at which each would be found. Source: Benjamini and Hochberg,
/// "Controlling the false discovery rate", J. R. Stat. Soc. B 57 (1995). In the order of p.
std::vector<double> false_discovery_rates(std::span<const double> p);

/// Pearson's correlation of n pairs; nan when one side is constant.
double pearson(std::span<const double> x, std::span<const double> y);
/// Spearman's: Pearson's of the ranks, ties sharing the mean of theirs.
double spearman(std::span<const double> x, std::span<const double> y);
/// The two-sided p-value of a correlation r of n pairs by permutation of one side: the share of `rounds` shuffles that
/// reach |r|, the order as it came included.
double permutation_p(std::span<const double> x, std::span<const double> y, std::int64_t rounds, std::uint64_t seed);

} // namespace noether::alignment
