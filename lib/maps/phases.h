// What gradient descent does at each mu, on the balanced line: phases, and the values of mu that part them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace noether::maps {

enum class Phase { monotone, catapult, periodic, chaotic, divergent, undecided };
std::string_view name_of(Phase phase);

struct PhaseOptions {
  std::int64_t transient = 20000; ///< steps before an attractor is looked for
  std::int64_t steps = 20000;     ///< of the exponent
  std::int64_t longest = 64;      ///< period that is looked for
  double tolerance = 1e-9;        ///< within which a cycle must close
};

/// What almost every orbit on the balanced line ends in.
struct Attractor {
  Phase phase = Phase::undecided;
  std::int64_t period = 0;  ///< of a cycle; 1: a fixed point
  std::int64_t escaped = 0; ///< the step at which it diverged
  double exponent = 0;      ///< mean ln |F'| over `steps`, nats a step; -infinity on a superstable cycle
  double e = 0;             ///< a point of it: of a cycle its smallest
};
/// The phase at mu > 0, from the orbit of the critical point. Divergent: it leaves (-mu, 2), which is invariant up to
/// there. Periodic: it closes within the tolerance, and its multiplier is below 1; on the fixed point e = 0 that is
/// monotone where |F(e)| <= |e| for every e in (-mu, 2), so that no loss ever rises, and else catapult. Chaotic: it
/// does not close, and its exponent exceeds three standard errors (over 20 blocks of its steps). Else undecided. Throws
/// Error for another mu.
Attractor classify(double mu, const PhaseOptions& options);

/// A value of mu that parts two phases, found by bisection to 1e-12 without its closed form, which stands beside it.
struct Threshold {
  std::string from, to;
  double mu = 0;
  double closed_form = 0; ///< nan where none is known
};
/// Monotone to catapult, to period 2, to period 4, ..., and to divergence. Source of the closed forms: arXiv
/// 2605.21292.
std::vector<Threshold> thresholds(std::int64_t doublings);

/// mu_k, where the cycle of period 2^(k - 1) begins to double, k = 1 .. count: its multiplier is -1. Cycles are
/// followed in mu by Newton's method. Their distances shrink by Feigenbaum's ratio, 4.6692016.
std::vector<double> period_doublings(std::int64_t count);

} // namespace noether::maps
