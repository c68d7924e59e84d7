// Mini-batches: each step draws its own map.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace noether::maps {

/// What the draws of a single sample are distributed as; a batch takes the mean of its samples.
enum class Draw { gaussian, two_point };
Draw draw_of(std::string_view name); ///< throws UsageError with a suggestion

/// a' = a - (kappa ab - nu) b, b' = b - (kappa ab - nu) a, with kappa and nu of the step's batch: means over `batch`
/// samples, independent, of 1 and mu with these standard deviations a sample. Source: arXiv 2605.21292, on random
/// switching; kappa = 1 there.
struct SwitchingOptions {
  double mu = 0.8, nu_deviation = 0.3, kappa_deviation = 0;
  Draw draw = Draw::gaussian;
  std::int64_t batch = 1;
  double a = 0.9, b = 0.8; ///< where every orbit begins
  std::int64_t orbits = 10000, steps = 1000;
  std::uint64_t seed = 0;
  int threads = 1;
};

/// A share of orbits, between the bounds of Wilson's interval of 95%.
struct Share {
  double value = 0, low = 0, high = 0;
};
Share share_of(std::int64_t count, std::int64_t all);

struct Switching {
  std::int64_t escaped = 0;
  Share probability;
  std::vector<std::int64_t> first_escape; ///< [steps + 1]: orbits that first exceeded kEscape after so many steps
  double mean_first_escape = 0;           ///< of those that escaped; nan for none
  double across = 0, across_stderr = 0; ///< mean ln |1 + e| of an orbit on the balanced line, over orbits; nan for none
  std::int64_t superstable = 0; ///< orbits where it is -infinity, as they came through e = -1; left out of the mean
  std::int64_t balanced_escaped = 0; ///< of those, left out of it
};
/// The same for any number of threads. The exponent across is that of a = b = (a + b) / 2 under the same draws, over
/// the steps after the first tenth.
Switching switching(const SwitchingOptions& options);

} // namespace noether::maps
