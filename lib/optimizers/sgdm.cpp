// Stochastic gradient descent with momentum, one pass. Source: torch.optim.SGD's documentation, dampening 0.
#include "optimizers/passes.h"

#include <cmath>

namespace noether::optimizers {
namespace {

/// theta <- theta - (ahead G + along b): Nesterov looks ahead of the momentum, plain momentum follows it.
template <class Real> struct Factors { Real scale, decay, momentum, ahead, along; };

template <class Real>
__attribute__((always_inline)) inline void update(Real* __restrict theta, const Real* __restrict grad,
                                                  Real* __restrict momentum, std::int64_t n, const Factors<Real>& f) {
  const Factors<Real> c = f; // a copy: the compiler then knows that the arrays do not overlap it
  for (std::int64_t i = 0; i < n; ++i) {
    const Real g = c.scale * grad[i] + c.decay * theta[i];
    momentum[i] = c.momentum * momentum[i] + g; // the first step starts from zeros, so that it takes G itself
    theta[i] -= c.ahead * g + c.along * momentum[i];
  }
}
NOETHER_CLONES void pass(float* theta, const float* grad, float* momentum, std::int64_t n, const Factors<float>& f) {
  update(theta, grad, momentum, n, f);
}
NOETHER_CLONES void pass(double* theta, const double* grad, double* momentum, std::int64_t n,
                         const Factors<double>& f) {
  update(theta, grad, momentum, n, f);
}

} // namespace

template <class Real>
StepResult sgdm_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context) {
  const double norm = norm_of(arena, context);
  if (!std::isfinite(norm)) return {.gradient_norm = norm};

  const double lr = h.lr * context.lr_factor;
  Factors<Real> factors{.scale = static_cast<Real>(clip_scale(norm, h.clip)),
                        .decay = 0,
                        .momentum = static_cast<Real>(h.momentum),
                        .ahead = static_cast<Real>(h.nesterov ? lr : 0),
                        .along = static_cast<Real>(h.nesterov ? lr * h.momentum : lr)};
  Factors<Real> decaying = factors;
  decaying.decay = static_cast<Real>(h.weight_decay);

  Real* const momentum = arena.state[0];
  for_blocks(blocks_of(arena.segments), count_of(arena.segments), context.threads, [&](std::size_t, const Block& b) {
    pass(arena.theta + b.begin, arena.grad + b.begin, momentum + b.begin, b.end - b.begin,
         arena.segments[b.segment].decay ? decaying : factors);
  });
  return {.gradient_norm = norm};
}

template StepResult sgdm_step(const Arena<float>&, const Hyperparameters&, const StepContext&);
template StepResult sgdm_step(const Arena<double>&, const Hyperparameters&, const StepContext&);

} // namespace noether::optimizers
