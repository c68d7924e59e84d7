// Attractors against mu.
#pragma once

#include "maps/polynomial.h"

#include <cstdint>
#include <vector>

namespace noether::maps {

struct DiagramOptions {
  Family map = balanced_line();
  std::vector<double> mu;
  std::int64_t transient = 1000, keep = 200; ///< steps that are left out, and that are kept
  std::vector<double> starts;                ///< of an orbit each; none: critical_starts() of each mu's map
  bool follow = false; ///< each mu begins where the one before it ended, so that branches are followed while they last
  int threads = 1;
};

/// Orbits, as many to a mu as it has starts, one mu after another.
struct Diagram {
  std::vector<std::int64_t> first;   ///< [mu + 1]: the orbits of mu i are first[i] .. first[i + 1] - 1
  std::vector<double> e;             ///< [orbits, keep]; nan from where an orbit diverged
  std::vector<std::int64_t> escaped; ///< [orbits]: the step at which it did, or 0
  /// [orbits]: 1 for the attractor of the first start, 2 for that of the first start that does not end there, ...; and
  /// 0 of an orbit that diverged. Told apart by one_attractor().
  std::vector<std::int64_t> branch;
};
/// The same bytes for any number of threads. With follow an orbit that diverged is followed by one from the start.
/// Throws Error where it would not fit into memory.
Diagram diagram(const DiagramOptions& options);

} // namespace noether::maps
