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
  std::int64_t orbits = 0; ///< at each mu; 0: orbits_of()
  int threads = 1;
};

/// As many orbits at each mu; where a map has fewer critical points than another, the last of them are empty.
struct Diagram {
  std::int64_t orbits = 0;           ///< at each mu
  std::vector<double> e;             ///< [mu, orbits, keep]; nan from where an orbit diverged, and of empty ones
  std::vector<std::int64_t> escaped; ///< [mu, orbits]: the step at which it did, or 0
  /// [mu, orbits]: 1 for the attractor of the first start, 2 for that of the first start that does not end there, ...;
  /// and 0 of an orbit that diverged or is empty. Told apart by one_attractor().
  std::vector<std::int64_t> branch;
};
/// The most starts of any mu.
std::int64_t orbits_of(const DiagramOptions& options);
/// The same bytes for any number of threads. With follow an orbit that diverged is followed by one from the start.
/// Throws Error where it would not fit into memory.
Diagram diagram(const DiagramOptions& options);

} // namespace noether::maps
