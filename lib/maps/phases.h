// What gradient descent does at each mu, on the balanced line: phases, and the values of mu that part them.
#pragma once

#include "maps/polynomial.h"

#include <cstdint>
#include <span>
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

/// What an orbit ends in.
struct Attractor {
  Phase phase = Phase::undecided;
  std::int64_t period = 0;  ///< of a cycle; 1: a fixed point
  std::int64_t escaped = 0; ///< the step at which it diverged
  double exponent = 0;      ///< mean ln |F'| over `steps`, nats a step; -infinity on a superstable cycle
  double e = 0;             ///< a point of it: of a cycle its smallest
};
/// What the orbit of `map` from `start` ends in. Divergent: it comes beyond map.escape in all its steps. Periodic: it
/// closes within the tolerance, and its multiplier is below 1. Chaotic: it does not close, and its exponent exceeds
/// three standard errors (over 20 blocks of its steps). Else undecided. `points` is filled with the attractor's orbit.
Attractor settle(const Polynomial& map, double start, const PhaseOptions& options,
                 std::vector<double>* points = nullptr);

/// Whether two orbits, of as many points, run on one attractor. Cycles (those that repeat within 1e-6 of their size) do
/// where their least points are that near; others do where half of the points of one have a point of the other beside
/// them, within four times the range by the count. A cycle is never what does not repeat.
bool one_attractor(std::span<const double> a, std::span<const double> b);

/// Attractors that coexist, each with how many of the starts end there, in the order of the first of them. All that
/// diverge are one, and so are all that are undecided and on one set of points.
struct Branch {
  Attractor attractor;
  std::int64_t starts = 0;
  double start = 0; ///< the first
};
std::vector<Branch> branches(const Polynomial& map, std::span<const double> starts, const PhaseOptions& options);

/// The phase of almost every orbit on the balanced line at mu > 0: as settle() says, from the critical point; but the
/// fixed point e = 0 is monotone where |F(e)| <= |e| for every e in (-mu, 2), so that no loss ever rises, and else
/// catapult; and what will leave (-mu, 2), but has not, is undecided. Throws Error for another mu.
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
