// Periodic windows of a family of maps: the intervals of mu inside chaos where a cycle attracts.
#pragma once

#include "maps/polynomial.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace noether::maps {

struct WindowOptions {
  double low = 0, high = 1;   ///< of the superstable points
  std::int64_t count = 10000; ///< steps of the search between them
  std::int64_t longest = 8;   ///< period
  int threads = 1;
};

/// A cycle of this period appears with another, which repels, at `opens`, where its multiplier is 1 (a tangent
/// bifurcation); comes through a critical point at `superstable`; begins to double its period at `doubles`, where its
/// multiplier is -1; doublings come to their end at `accumulates`; and the chaotic bands that they lead to meet the
/// cycle that repels at `closes` (a crisis), where the window ends. Edges are exact to 1e-12 or so, relative, but
/// for accumulates.
struct Window {
  std::int64_t period = 0;
  double opens = 0, superstable = 0, doubles = 0;
  /// From the superstable points of the doublings, the rest by their ratio; nothing where they could not be followed.
  std::optional<double> accumulates, accumulates_error;
  std::optional<double> closes; ///< nothing where no crisis was found before the bands met another critical point
  std::int64_t within = 0;      ///< the period of the smallest other window that it lies in, 0 for none
};

/// All windows whose period is from 2 to `longest` and whose superstable point is between low and high, by where they
/// open. The orbit of each critical point of each map is followed for so many steps over `count` intervals of mu, and
/// returns to its begin where a sign changes; so two windows of one period that lie closer than an interval may both be
/// missed. Cycles that come of doublings, or of a cycle that splits in two, open no window of their own.
std::vector<Window> windows(const Family& family, const WindowOptions& options);

/// Where a cycle of the family doubles its period as mu grows from `low`: the attracting cycle there is followed to
/// where its multiplier is -1, and its doubled one from there, `count` times or until mu exceeds `high`.
struct Doubling {
  std::int64_t period = 0; ///< of the cycle that doubles
  double mu = 0;
};
std::vector<Doubling> doublings(const Family& family, double low, double high, std::int64_t count);

} // namespace noether::maps
