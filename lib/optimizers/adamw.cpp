// AdamW, one pass. Source: arXiv 1711.05101, algorithm 2, in the form and order of operations of torch.optim.AdamW.
#include "optimizers/passes.h"

#include <cmath>

namespace noether::optimizers {
namespace {

/// Everything that is the same for all numbers of a segment.
template <class Real> struct Factors { Real scale, keep, rate1, beta2, rate2, root, epsilon, step_size; };

template <class Real>
__attribute__((always_inline)) inline void update(Real* __restrict theta, const Real* __restrict grad,
                                                  Real* __restrict m, Real* __restrict v, std::int64_t n,
                                                  const Factors<Real>& f) {
  const Factors<Real> c = f; // a copy: the compiler then knows that the arrays do not overlap it
  for (std::int64_t i = 0; i < n; ++i) {
    const Real g = c.scale * grad[i];
    m[i] += c.rate1 * (g - m[i]);
    v[i] = c.beta2 * v[i] + c.rate2 * g * g;
    theta[i] = c.keep * theta[i] - c.step_size * (m[i] / (std::sqrt(v[i]) * c.root + c.epsilon));
  }
}
NOETHER_CLONES void pass(float* theta, const float* grad, float* m, float* v, std::int64_t n, const Factors<float>& f) {
  update(theta, grad, m, v, n, f);
}
NOETHER_CLONES void pass(double* theta, const double* grad, double* m, double* v, std::int64_t n,
                         const Factors<double>& f) {
  update(theta, grad, m, v, n, f);
}

} // namespace

template <class Real>
StepResult adamw_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context) {
  const double norm = norm_of(arena, context);
  if (!std::isfinite(norm)) return {.gradient_norm = norm};

  const double k = static_cast<double>(context.taken + 1), lr = h.lr * context.lr_factor;
  Factors<Real> factors{.scale = static_cast<Real>(clip_scale(norm, h.clip)),
                        .keep = 1,
                        .rate1 = static_cast<Real>(1 - h.beta1),
                        .beta2 = static_cast<Real>(h.beta2),
                        .rate2 = static_cast<Real>(1 - h.beta2),
                        .root = static_cast<Real>(1 / std::sqrt(1 - std::pow(h.beta2, k))),
                        .epsilon = static_cast<Real>(h.epsilon),
                        .step_size = static_cast<Real>(lr / (1 - std::pow(h.beta1, k)))};
  Factors<Real> decaying = factors;
  decaying.keep = static_cast<Real>(1 - lr * h.weight_decay);

  Real *const m = arena.state[0], *const v = arena.state[1];
  for_blocks(blocks_of(arena.segments), count_of(arena.segments), context.threads, [&](std::size_t, const Block& b) {
    pass(arena.theta + b.begin, arena.grad + b.begin, m + b.begin, v + b.begin, b.end - b.begin,
         arena.segments[b.segment].decay ? decaying : factors);
  });
  return {.gradient_norm = norm};
}

template StepResult adamw_step(const Arena<float>&, const Hyperparameters&, const StepContext&);
template StepResult adamw_step(const Arena<double>&, const Hyperparameters&, const StepContext&);

} // namespace noether::optimizers
