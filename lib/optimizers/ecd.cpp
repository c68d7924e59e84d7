// Energy conserving descent: a first pass takes every dot product that the step needs, a second one moves momentum and
// parameters. Sources: the q = 1 form arXiv 2601.22257, section 3; the separable one arXiv 2306.00352.
#include "base/random.h"
#include "optimizers/passes.h"

#include <array>
#include <cmath>
#include <cstring>

namespace noether::optimizers {
namespace {

/// At F - F0 below this the force 1 / (F - F0) is rounding error.
constexpr double kFloor = 1e-10;

/// Dot products over a block or a tensor: p momentum, g gradient as it came, t parameters (zero where nothing decays).
struct Sums {
  double pp = 0, pg = 0, gg = 0, pt = 0, gt = 0, tt = 0;
  void operator+=(const Sums& other) {
    pp += other.pp, pg += other.pg, gg += other.gg, pt += other.pt, gt += other.gt, tt += other.tt;
  }
};

template <class Real>
__attribute__((always_inline)) inline Sums dots(const Real* p, const Real* g, const Real* t, std::int64_t n) {
  Lanes pp{}, pg{}, gg{}, pt{}, gt{}, tt{}, P, G, T{};
  const auto add = [&]() __attribute__((always_inline)) {
    pp += P * P;
    pg += P * G;
    gg += G * G;
    if (t == nullptr) return;
    pt += P * T;
    gt += G * T;
    tt += T * T;
  };
  const std::int64_t whole = n / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    widen(p + i, P);
    widen(g + i, G);
    if (t != nullptr) widen(t + i, T);
    add();
  }
  widen(p + whole, n - whole, P);
  widen(g + whole, n - whole, G);
  if (t != nullptr) widen(t + whole, n - whole, T);
  add();
  return {sum_of(pp), sum_of(pg), sum_of(gg), sum_of(pt), sum_of(gt), sum_of(tt)};
}

__attribute__((always_inline)) inline Sums dots_in_runs(const float* p, const float* g, const float* t,
                                                        std::int64_t n) {
  std::array<Doubles, 6> totals{};
  const std::int64_t whole = n / (kFloats * kRun) * (kFloats * kRun);
  for (std::int64_t begin = 0; begin < whole; begin += kFloats * kRun) {
    Floats pp{}, pg{}, gg{}, pt{}, gt{}, tt{}, P, G, T;
    for (std::int64_t i = begin; i < begin + kFloats * kRun; i += kFloats) {
      std::memcpy(&P, p + i, sizeof P);
      std::memcpy(&G, g + i, sizeof G);
      pp += P * P;
      pg += P * G;
      gg += G * G;
      if (t == nullptr) continue;
      std::memcpy(&T, t + i, sizeof T);
      pt += P * T;
      gt += G * T;
      tt += T * T;
    }
    totals[0] += __builtin_convertvector(pp, Doubles);
    totals[1] += __builtin_convertvector(pg, Doubles);
    totals[2] += __builtin_convertvector(gg, Doubles);
    if (t == nullptr) continue;
    totals[3] += __builtin_convertvector(pt, Doubles);
    totals[4] += __builtin_convertvector(gt, Doubles);
    totals[5] += __builtin_convertvector(tt, Doubles);
  }
  Sums all{sum_of(totals[0]), sum_of(totals[1]), sum_of(totals[2]),
           sum_of(totals[3]), sum_of(totals[4]), sum_of(totals[5])};
  all += dots(p + whole, g + whole, t == nullptr ? t : t + whole, n - whole);
  return all;
}
NOETHER_CLONES Sums sum_pass(const float* p, const float* g, const float* t, std::int64_t n) {
  return dots_in_runs(p, g, t, n);
}
NOETHER_CLONES Sums sum_pass(const double* p, const double* g, const double* t, std::int64_t n) {
  return dots(p, g, t, n);
}

/// P <- along P - pull g - decay theta, theta <- theta + dt P.
template <class Real> struct Factors { Real along, pull, decay, dt; };

template <class Real>
__attribute__((always_inline)) inline void update(Real* __restrict theta, const Real* __restrict grad,
                                                  Real* __restrict p, std::int64_t n, const Factors<Real>& f) {
  const Factors<Real> c = f; // a copy: the compiler then knows that the arrays do not overlap it
  for (std::int64_t i = 0; i < n; ++i) {
    p[i] = c.along * p[i] - c.pull * grad[i] - c.decay * theta[i];
    theta[i] += c.dt * p[i];
  }
}
NOETHER_CLONES void move_pass(float* theta, const float* grad, float* p, std::int64_t n, const Factors<float>& f) {
  update(theta, grad, p, n, f);
}
NOETHER_CLONES void move_pass(double* theta, const double* grad, double* p, std::int64_t n, const Factors<double>& f) {
  update(theta, grad, p, n, f);
}

/// The first pass. G = scale grad + weight decay theta is what the equations call the gradient.
struct Gathered {
  std::vector<Block> blocks;
  std::int64_t count = 0;
  std::vector<Sums> tensor; ///< of each
  Sums all;
  double norm = 0;     ///< of the gradient as it came; when it is not finite, the rest is not there
  double F = 0;        ///< the loss and its decay term
  double distance = 0; ///< F - F0
  double scale = 1;    ///< by which the gradient is clipped
  double decay = 0;

  double p_dot_G(const Sums& s) const { return scale * s.pg + decay * s.pt; }
  double G_dot_G(const Sums& s) const { return scale * scale * s.gg + 2 * scale * decay * s.gt + decay * decay * s.tt; }
};

/// direction: the momentum, or before the first step the gradient, which then stands in for it.
/// Throws FloorError when F has come down to F0.
template <class Real>
Gathered gather(const Arena<Real>& arena, const Real* direction, const Hyperparameters& h, const StepContext& context) {
  Gathered all{.blocks = blocks_of(arena.segments),
               .count = count_of(arena.segments),
               .tensor = std::vector<Sums>(arena.segments.size()),
               .all = {},
               .decay = h.weight_decay};
  std::vector<Sums> partial(all.blocks.size());
  for_blocks(all.blocks, all.count, context.threads, [&](std::size_t i, const Block& b) {
    const bool decays = h.weight_decay != 0 && arena.segments[b.segment].decay;
    partial[i] =
        sum_pass(direction + b.begin, arena.grad + b.begin, decays ? arena.theta + b.begin : nullptr, b.end - b.begin);
  });
  for (std::size_t i = 0; i < all.blocks.size(); ++i) all.tensor[all.blocks[i].segment] += partial[i];
  for (const Sums& sums : all.tensor) all.all += sums;

  all.norm = context.gradient_norm < 0 ? std::sqrt(all.all.gg) : context.gradient_norm;
  if (!std::isfinite(all.norm)) return all;
  all.scale = clip_scale(all.norm, h.clip);
  all.F = context.loss + h.weight_decay / 2 * all.all.tt;
  all.distance = all.F - h.f0;
  if (!(all.distance > kFloor))
    throw FloorError(
        "the loss, {:.6g}, has come down to F0 = {:g}: nothing is left to descend; go on with a smaller --f0", all.F,
        h.f0);
  return all;
}

/// The second pass: factors[tensor], and then P <- P + bounce z. Parameters move before the bounce.
template <class Real>
void move(const Arena<Real>& arena, const Gathered& all, bool first, const std::vector<Factors<Real>>& factors,
          double bounce, const StepContext& context) {
  Real* const p = arena.state[0];
  const Random random(context.seed, Purpose::kBounce, context.step);
  for_blocks(all.blocks, all.count, context.threads, [&](std::size_t, const Block& b) {
    if (first) std::copy(arena.grad + b.begin, arena.grad + b.end, p + b.begin);
    move_pass(arena.theta + b.begin, arena.grad + b.begin, p + b.begin, b.end - b.begin, factors[b.segment]);
    std::array<float, 1024> kick;
    for (std::int64_t i = b.begin; bounce > 0 && i < b.end; i += std::ssize(kick)) {
      const std::int64_t piece = std::min(std::ssize(kick), b.end - i);
      random.fill_normal(kick.data(), static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(piece), 0, bounce);
      for (std::int64_t k = 0; k < piece; ++k) p[i + k] += static_cast<Real>(kick[static_cast<std::size_t>(k)]);
    }
  });
}

} // namespace

template <class Real>
StepResult ecd_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context) {
  const bool first = context.taken == 0; // P = -grad / |grad|
  const Gathered all = gather(arena, first ? arena.grad : arena.state[0], h, context);
  if (!std::isfinite(all.norm)) return {.gradient_norm = all.norm};
  if (!(all.all.pp > 0))
    throw DivergedError("the {} is zero: there is no direction to go", first ? "gradient" : "momentum");

  const double N = static_cast<double>(all.count), dt = h.lr * context.lr_factor / std::sqrt(h.eta);
  const double c = dt * h.eta / 2 * (N > 1 ? N / (N - 1) : 1) / all.distance;
  const double unit = (first ? -1 : 1) / std::sqrt(all.all.pp);
  // With u = unit p: u - c (G - u (u . G)) = u (1 + c (u . G)) - c G.
  double length2 = 0; // |P|^2 after the update, known before it: so that bounces need no pass of their own
  std::vector<Factors<Real>> factors(all.tensor.size());
  for (std::size_t s = 0; s < all.tensor.size(); ++s) {
    const Sums& sums = all.tensor[s];
    const double uG = unit * all.p_dot_G(sums), dot = h.per_tensor ? uG : unit * all.p_dot_G(all.all);
    const double along = 1 + c * dot;
    length2 += along * along * unit * unit * sums.pp - 2 * along * c * uG + c * c * all.G_dot_G(sums);
    factors[s] = {static_cast<Real>(along * unit), static_cast<Real>(c * all.scale),
                  static_cast<Real>(arena.segments[s].decay ? c * h.weight_decay : 0), static_cast<Real>(dt)};
  }
  // P <- unit(P/|P| + nu z), up to its length, which the next step sets anyway.
  move(arena, all, first, factors, h.nu / std::sqrt(N) * std::sqrt(length2), context);
  return {.gradient_norm = all.norm, .distance = all.distance};
}

template <class Real>
StepResult ecdsep_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context) {
  const bool first = context.taken == 0; // P = -grad / |grad|, at the length that the energy gives it
  const Gathered all = gather(arena, first ? arena.grad : arena.state[0], h, context);
  if (!std::isfinite(all.norm)) return {.gradient_norm = all.norm};
  if (first && !(all.all.pp > 0)) throw DivergedError("the gradient is zero: there is no direction to go");

  // E / V - s, where E = V0 (s + deltaEn) and V = (F - F0)^eta. Where it is not positive there is no such momentum: the
  // length stays what it was.
  const double start = first ? all.distance : context.start_distance;
  const double length2_of_energy = (h.s + h.delta_energy) * std::pow(start / all.distance, h.eta) - h.s;
  double along = 1;
  if (first || (all.all.pp > 0 && length2_of_energy > 0))
    along = (first ? -1 : 1) * std::sqrt(std::max(0.0, length2_of_energy) / all.all.pp);

  const double dt = h.lr * context.lr_factor, c = dt * h.eta / all.distance;
  const double length2 =
      along * along * all.all.pp - 2 * along * c * all.p_dot_G(all.all) + c * c * all.G_dot_G(all.all);
  std::vector<Factors<Real>> factors(all.tensor.size());
  for (std::size_t s = 0; s < factors.size(); ++s)
    factors[s] = {static_cast<Real>(along), static_cast<Real>(c * all.scale),
                  static_cast<Real>(arena.segments[s].decay ? c * h.weight_decay : 0),
                  static_cast<Real>(2 * dt / (h.s + std::max(0.0, length2)))};
  const double N = static_cast<double>(all.count);
  move(arena, all, first, factors, h.nu / std::sqrt(N) * std::sqrt(std::max(0.0, length2)), context);
  return {.gradient_norm = all.norm, .distance = all.distance};
}

template StepResult ecd_step(const Arena<float>&, const Hyperparameters&, const StepContext&);
template StepResult ecd_step(const Arena<double>&, const Hyperparameters&, const StepContext&);
template StepResult ecdsep_step(const Arena<float>&, const Hyperparameters&, const StepContext&);
template StepResult ecdsep_step(const Arena<double>&, const Hyperparameters&, const StepContext&);

} // namespace noether::optimizers
