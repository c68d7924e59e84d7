// Energy conserving descent in its q = 1 form: a first pass takes every dot product that the step needs, a second one
// moves momentum and parameters. Source: arXiv 2601.22257, section 3. The separable form (arXiv 2306.00352) is not
// here.
#include "base/random.h"
#include "optimizers/passes.h"

#include <cmath>

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
NOETHER_CLONES Sums sum_pass(const float* p, const float* g, const float* t, std::int64_t n) {
  return dots(p, g, t, n);
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

} // namespace

template <class Real>
StepResult ecd_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context) {
  const std::vector<Block> blocks = blocks_of(arena.segments);
  const std::int64_t count = count_of(arena.segments);
  Real* const p = arena.state[0];
  const bool first = context.taken == 0;
  // Before the first step the gradient stands in for the momentum: P = -grad / |grad|.
  const Real* const direction = first ? arena.grad : p;

  std::vector<Sums> partial(blocks.size());
  for_blocks(blocks, count, context.threads, [&](std::size_t i, const Block& b) {
    const bool decays = h.weight_decay != 0 && arena.segments[b.segment].decay;
    partial[i] =
        sum_pass(direction + b.begin, arena.grad + b.begin, decays ? arena.theta + b.begin : nullptr, b.end - b.begin);
  });
  Sums all;
  std::vector<Sums> tensor(arena.segments.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) tensor[blocks[i].segment] += partial[i];
  for (const Sums& sums : tensor) all += sums;

  const double norm = std::sqrt(all.gg);
  if (!std::isfinite(norm)) return {.gradient_norm = norm};
  const double F = context.loss + h.weight_decay / 2 * all.tt;
  const double distance = F - h.f0;
  if (!(distance > kFloor))
    throw FloorError(
        "the loss, {:.6g}, has come down to F0 = {:g}: nothing is left to descend; go on with a smaller --f0", F, h.f0);
  if (!(all.pp > 0))
    throw DivergedError("the {} is zero: there is no direction to go", first ? "gradient" : "momentum");

  const double N = static_cast<double>(count), dt = h.lr * context.lr_factor / std::sqrt(h.eta);
  const double c = dt * h.eta / 2 * (N > 1 ? N / (N - 1) : 1) / distance;
  const double scale = clip_scale(norm, h.clip), unit = (first ? -1 : 1) / std::sqrt(all.pp);
  // With u = unit p and G = scale g + wd t: u - c (G - u (u . G)) = u (1 + c (u . G)) - c G.
  const auto u_dot_G = [&](const Sums& s) { return unit * (scale * s.pg + h.weight_decay * s.pt); };
  double length2 = 0; // |P|^2 after the update, known before it: so that bounces need no pass of their own
  std::vector<Factors<Real>> factors(tensor.size());
  for (std::size_t s = 0; s < tensor.size(); ++s) {
    const double uu = unit * unit * tensor[s].pp, uG = u_dot_G(tensor[s]), dot = h.per_tensor ? uG : u_dot_G(all);
    const double GG = scale * scale * tensor[s].gg + 2 * scale * h.weight_decay * tensor[s].gt +
                      h.weight_decay * h.weight_decay * tensor[s].tt;
    const double along = 1 + c * dot;
    length2 += along * along * uu - 2 * along * c * uG + c * c * GG;
    factors[s] = {static_cast<Real>(along * unit), static_cast<Real>(c * scale),
                  static_cast<Real>(arena.segments[s].decay ? c * h.weight_decay : 0), static_cast<Real>(dt)};
  }
  // P <- unit(P/|P| + nu z), up to its length, which the next step sets anyway.
  const double bounce = h.nu / std::sqrt(N) * std::sqrt(length2);
  const Random random(context.seed, Purpose::kBounce, context.step);

  for_blocks(blocks, count, context.threads, [&](std::size_t, const Block& b) {
    if (first) std::copy(arena.grad + b.begin, arena.grad + b.end, p + b.begin);
    move_pass(arena.theta + b.begin, arena.grad + b.begin, p + b.begin, b.end - b.begin, factors[b.segment]);
    std::array<float, 1024> kick;
    for (std::int64_t i = b.begin; bounce > 0 && i < b.end; i += std::ssize(kick)) {
      const std::int64_t piece = std::min(std::ssize(kick), b.end - i);
      random.fill_normal(kick.data(), static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(piece), 0, bounce);
      for (std::int64_t k = 0; k < piece; ++k) p[i + k] += static_cast<Real>(kick[static_cast<std::size_t>(k)]);
    }
  });
  return {.gradient_norm = norm, .distance = distance};
}

template StepResult ecd_step(const Arena<float>&, const Hyperparameters&, const StepContext&);
template StepResult ecd_step(const Arena<double>&, const Hyperparameters&, const StepContext&);

} // namespace noether::optimizers
