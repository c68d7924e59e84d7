// What becomes of every starting point of a grid.
#pragma once

#include "base/reporter.h"

#include <cstdint>
#include <string>
#include <vector>

namespace noether::maps {

/// Each point is one of these. Undecided is not divergence: the orbit was bounded up to the limit, without a period
/// that was looked for.
enum class Fate : std::uint8_t { undecided, converged, periodic, diverged };

struct Axis {
  double low = -3, high = 3;
  std::int64_t count = 512;
  /// The middle of cell i, so that grids of other counts or a zoom have no point of their own.
  double at(std::int64_t i) const {
    return low + (high - low) * (static_cast<double>(i) + 0.5) / static_cast<double>(count);
  }
};

struct BasinOptions {
  bool over_mu = false;      ///< x is mu and y the imbalance w0 of a start on the zero-error curve; else x is a0, y b0
  double mu = 0.8;           ///< where it is not over mu
  std::vector<double> stack; ///< mu of several grids, one after another; none: one grid
  Axis x, y;
  std::int64_t steps = 2000, longest = 16; ///< the limit, and the longest period that is looked for
  double tolerance = 1e-9;                 ///< of |e| for convergence, and of a cycle's closing
  double offset = 1e-3;                    ///< over mu: the error that a start begins with
  int threads = 1;
};

/// How many grids there are, and the mu of one.
std::int64_t layers_of(const BasinOptions& options);
double mu_of(const BasinOptions& options, std::int64_t layer);

/// Grid by grid, row by row, y[0] first: [layers, y.count, x.count].
struct Basins {
  std::vector<Fate> fate;
  std::vector<std::uint32_t> steps; ///< until |e| <= tolerance, or until it was beyond kEscape; else the limit
  std::vector<std::uint8_t> period; ///< of a cycle
  std::int64_t point_steps = 0;     ///< that were computed
};
/// The same bytes for any number of threads and on every instruction set. Throws Error for a grid that does not fit
/// into memory.
Basins basins(const BasinOptions& options, Reporter& reporter);

/// How much of a grid has each fate: by the count of cells, and off by at most half the area of the cells that have
/// a neighbour of another fate.
struct Area {
  Fate fate = Fate::undecided;
  std::int64_t cells = 0;
  double fraction = 0, area = 0, error = 0;
};
std::vector<Area> areas(const Basins& basins, const BasinOptions& options, std::int64_t layer = 0);

std::string name_of(Fate fate);

} // namespace noether::maps
