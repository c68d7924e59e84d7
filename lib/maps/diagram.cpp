#include "maps/diagram.h"

#include "base/threads.h"
#include "maps/two_factor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace noether::maps {
namespace {

/// Orbits that are stepped together: independent ones, so that the compiler takes vectors and no step waits for
/// another.
constexpr std::int64_t kTogether = 16;

double start_of(const DiagramOptions& options, double mu) {
  return options.start.value_or(critical_point(mu) + 1e-6); // the point itself may fall on a cycle that repels
}

/// Values of mu from `first`, `count` of them up to kTogether, beginning at `at`, which is where they end afterwards.
void run(const DiagramOptions& options, std::int64_t first, std::int64_t count, std::array<double, kTogether>& at,
         Diagram& out) {
  std::array<double, kTogether> mu{};
  std::array<bool, kTogether> gone{};
  for (std::int64_t i = 0; i < count; ++i)
    mu[static_cast<std::size_t>(i)] = options.mu[static_cast<std::size_t>(first + i)];
  const std::int64_t steps = options.transient + options.keep;
  for (std::int64_t n = 1; n <= steps; ++n) {
    double largest = 0;
    for (std::size_t i = 0; i < kTogether; ++i) {
      at[i] = cubic(mu[i], at[i]);
      largest += std::abs(at[i]); // not a number once one is
    }
    const bool look = !(largest <= kEscape);
    for (std::size_t i = 0; look && i < static_cast<std::size_t>(count); ++i)
      if (!gone[i] && !(std::abs(at[i]) <= kEscape)) {
        gone[i] = true;
        out.escaped[static_cast<std::size_t>(first) + i] = n;
      }
    for (std::size_t i = 0; look && i < kTogether; ++i)
      if (gone[i]) at[i] = mu[i] = 0; // a fixed point, so that the others are not looked at for its sake
    if (n <= options.transient) continue;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      out.e[(static_cast<std::size_t>(first) + i) * static_cast<std::size_t>(options.keep) +
            static_cast<std::size_t>(n - options.transient - 1)] =
          gone[i] ? std::numeric_limits<double>::quiet_NaN() : at[i];
  }
}

} // namespace

Diagram diagram(const DiagramOptions& options) {
  const auto count = static_cast<std::int64_t>(options.mu.size());
  Diagram out;
  out.e.resize(static_cast<std::size_t>(count * options.keep));
  out.escaped.resize(static_cast<std::size_t>(count));
  if (options.follow) {
    std::array<double, kTogether> at{};
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == 0 || out.escaped[static_cast<std::size_t>(i - 1)] > 0)
        at[0] = start_of(options, options.mu[static_cast<std::size_t>(i)]);
      run(options, i, 1, at, out);
    }
    return out;
  }
  parallel_for((count + kTogether - 1) / kTogether, options.threads, [&](std::int64_t piece) {
    const std::int64_t first = piece * kTogether, size = std::min(kTogether, count - first);
    std::array<double, kTogether> at{};
    for (std::int64_t i = 0; i < size; ++i)
      at[static_cast<std::size_t>(i)] = start_of(options, options.mu[static_cast<std::size_t>(first + i)]);
    run(options, first, size, at, out);
  });
  return out;
}

} // namespace noether::maps
