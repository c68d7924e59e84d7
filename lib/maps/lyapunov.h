// Lyapunov exponents, with standard errors from independent blocks.
#pragma once

#include "maps/polynomial.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace noether::maps {

/// Where the orbits run: on the balanced line a = b, or on the invariant ellipse (0 < mu < 2), where e is that of the
/// map e^3 - 3e.
enum class Locus { balanced, ellipse };
Locus locus_of(std::string_view name); ///< throws UsageError with a suggestion

struct LyapunovOptions {
  Locus locus = Locus::balanced;
  std::int64_t blocks = 32; ///< orbits from starts of their own, drawn from the seed
  std::int64_t transient = 1000, steps = 10000;
  std::uint64_t seed = 0;
  int threads = 1;
};

/// Nats a step. -infinity where an orbit came through a critical point, as it does on a superstable cycle.
struct Exponent {
  double value = 0, standard_error = 0; ///< over blocks; nan where fewer than two count
};
struct Lyapunov {
  Exponent along, across;       ///< the locus: its own expansion, and that of what leaves it
  std::int64_t superstable = 0; ///< blocks of which an exponent is -infinity; left out of its mean
  std::int64_t escaped = 0;     ///< blocks that diverged; left out of both
  std::int64_t blocks = 0;
};

/// along: mean ln |F'(e)| on the balanced line (arXiv 2605.21292, section 3), mean ln |3 e^2 - 3| on the ellipse;
/// across: mean ln |1 + e|, and mean ln |1 + mu e + e^2|. Starts are uniform over what is invariant: e in (-mu, 2) on
/// the line (of length 2 about 0 where mu <= 0), e = 2 cos(theta) on the ellipse. The result does not depend on the
/// threads.
Lyapunov lyapunov(double mu, const LyapunovOptions& options);

/// along: mean ln |f'(x)| of another map, over orbits from within 1e-6 of `start` (relative where that exceeds 1), so
/// that they run on the attractor that it leads to: chaos soon parts them. There is no across: nan.
Lyapunov lyapunov(const Polynomial& map, double start, const LyapunovOptions& options);

} // namespace noether::maps
