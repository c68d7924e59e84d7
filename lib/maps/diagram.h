// The attractor of the balanced line against mu.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace noether::maps {

struct DiagramOptions {
  std::vector<double> mu;
  std::int64_t transient = 1000, keep = 200; ///< steps that are left out, and that are kept
  std::optional<double> start;               ///< e at the beginning; by default beside the critical point
  bool follow = false; ///< each mu begins where the one before it ended, so that a branch is followed while it lasts
  int threads = 1;
};

struct Diagram {
  std::vector<double> e;             ///< [mu, keep]; nan from where an orbit diverged
  std::vector<std::int64_t> escaped; ///< [mu]: the step at which it did, or 0
};
/// The same bytes for any number of threads. With follow an orbit that diverged is followed by one from the start.
Diagram diagram(const DiagramOptions& options);

} // namespace noether::maps
