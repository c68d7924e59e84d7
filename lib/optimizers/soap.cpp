// SOAP: Adam in the slowly renewed eigenbasis of Shampoo's factors. Source: Vyas et al., arXiv 2409.11321, and the
// order of operations of its authors' published program.
//
// That program turns the momentum out of its basis and back at every step. That changes nothing but the last digits,
// and costs as much as all the rest; here it is done when the basis is renewed. In float64, which is for comparing, it
// is done at every step, and factorisations are in float32 where theirs are: so its numbers can be met.
#include "optimizers/basis.h"
#include "optimizers/passes.h"
#include "products/product.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <limits>

namespace noether::optimizers {
namespace {

template <class Real> struct Factors { Real scale, rate1, beta2, rate2, epsilon, step_size, keep; };

/// One step of the moments. direction <- m / (sqrt(v) + epsilon); it may be the gradient's own place.
template <class Real>
__attribute__((always_inline)) inline void see(Real* direction, const Real* grad, Real* __restrict m,
                                               Real* __restrict v, std::int64_t n, const Factors<Real>& f) {
  const Factors<Real> c = f; // a copy: the compiler then knows that the arrays do not overlap it
  for (std::int64_t i = 0; i < n; ++i) {
    const Real g = c.scale * grad[i];
    m[i] += c.rate1 * (g - m[i]);
    v[i] = c.beta2 * v[i] + c.rate2 * g * g;
    direction[i] = m[i] / (std::sqrt(v[i]) + c.epsilon);
  }
}
NOETHER_CLONES void moments_pass(float* direction, const float* grad, float* m, float* v, std::int64_t n,
                                 const Factors<float>& f) {
  see(direction, grad, m, v, n, f);
}
NOETHER_CLONES void moments_pass(double* direction, const double* grad, double* m, double* v, std::int64_t n,
                                 const Factors<double>& f) {
  see(direction, grad, m, v, n, f);
}

template <class Real>
__attribute__((always_inline)) inline void go(Real* __restrict theta, const Real* __restrict direction, std::int64_t n,
                                              const Factors<Real>& f) {
  const Factors<Real> c = f;
  for (std::int64_t i = 0; i < n; ++i) theta[i] = c.keep * (theta[i] - c.step_size * direction[i]);
}
NOETHER_CLONES void move_pass(float* theta, const float* direction, std::int64_t n, const Factors<float>& f) {
  go(theta, direction, n, f);
}
NOETHER_CLONES void move_pass(double* theta, const double* direction, std::int64_t n, const Factors<double>& f) {
  go(theta, direction, n, f);
}

/// The matrix of a segment, and what belongs to it.
template <class Real> struct Matrix {
  const Segment& segment;
  std::array<Real*, 2> sides; ///< nullptr: not turned on this side
  Real *theta, *m, *v;
  const Real* grad;

  at::Tensor tensor(Real* data) const {
    return at::from_blob(data, {segment.rows, segment.columns}, c10::CppTypeToScalarType<Real>::value);
  }
  at::Tensor side(std::size_t s) const {
    const std::int64_t n = s == 0 ? segment.rows : segment.columns;
    return at::from_blob(sides[s], {n + 1, n}, c10::CppTypeToScalarType<Real>::value);
  }
};

/// X, [rows, columns], seen in both bases, or put back out of them.
using Bases = std::array<std::optional<Basis>, 2>;
constexpr std::array kHands{Hand::left, Hand::right};
void turn(const Bases& bases, at::Tensor& X, bool forth) {
  for (const std::size_t s : {0U, 1U})
    if (bases[s]) forth ? bases[s]->forth(X, kHands[s]) : bases[s]->back(X, kHands[s]);
}

/// Throws when the factor is not finite: a factorisation of that may give anything, or never end.
at::Tensor finite_factor(const at::Tensor& side, const Segment& segment) {
  at::Tensor factor = factor_of(side);
  if (!factor.isfinite().all().item<bool>())
    throw DivergedError("{}: SOAP's sum of squared gradients is not finite", segment.name);
  return factor;
}

/// A step of the power iteration, and a QR decomposition: the basis follows the factor. The second moment's rows or
/// columns follow the basis' order.
void renew(const at::Tensor& side, const Basis& basis, std::int64_t dimension, at::Tensor& v, const Segment& segment) {
  const at::Tensor Q = basis.formed().to(at::kFloat), factor = finite_factor(side, segment).to(at::kFloat);
  // LibTorch's own product in a float64 run: its rounding is that of the published program.
  const at::Tensor moved = v.scalar_type() == at::kFloat ? products::product(factor, Q.t()) : at::mm(factor, Q);
  const at::Tensor order = (Q * moved).sum(0).argsort(/*stable=*/true, 0, /*descending=*/true);
  v.copy_(v.index_select(dimension, order));
  set_basis(side, moved.index_select(1, order));
}

template <class Real>
void matrix_step(const Matrix<Real>& matrix, const Hyperparameters& h, std::int64_t count, bool first,
                 const Factors<Real>& factors, int& fallbacks) {
  const Segment& segment = matrix.segment;
  // from_blob asks for a pointer that is not const; nothing writes through it.
  const at::Tensor G = matrix.tensor(const_cast<Real*>(matrix.grad)) * static_cast<double>(factors.scale);
  Factors<Real> unscaled = factors;
  unscaled.scale = 1;
  const std::int64_t every = h.precondition_every;
  // Bases of the published program are float32 from their first renewal on.
  const bool renewed = count > every;
  const auto bases = [&](bool in_float32) {
    Bases both;
    for (const std::size_t s : {0U, 1U}) {
      // Where very many vectors are turned, one product with the whole basis is worth putting it together.
      const std::int64_t vectors = s == 0 ? segment.columns : segment.rows;
      if (matrix.sides[s] != nullptr)
        both[s].emplace(matrix.side(s), in_float32, std::max<std::int64_t>(64, vectors / 16));
    }
    return both;
  };
  const auto add = [&] {
    for (const std::size_t s : {0U, 1U})
      if (matrix.sides[s] != nullptr) add_to_factor(matrix.side(s), s == 0 ? G : G.t(), 1 - h.beta2);
  };
  if (first) {
    add();
    for (const std::size_t s : {0U, 1U})
      if (matrix.sides[s] != nullptr)
        set_basis(matrix.side(s), eigenvectors(finite_factor(matrix.side(s), segment), fallbacks));
  }
  if (count == 0) return; // the first step is for the factors alone

  at::Tensor m = matrix.tensor(matrix.m), v = matrix.tensor(matrix.v);
  const Bases now = bases(renewed);
  at::Tensor direction = G.clone();
  turn(now, direction, true);
  moments_pass(direction.data_ptr<Real>(), direction.data_ptr<Real>(), matrix.m, matrix.v, segment.length, unscaled);
  turn(now, direction, false);
  move_pass(matrix.theta, direction.data_ptr<Real>(), segment.length, factors);
  direction.reset();
  if (!first) add();

  const bool renews = count % every == 0;
  if (!renews && sizeof(Real) == sizeof(float)) return;
  at::Tensor plain = m.clone();
  turn(now, plain, false);
  if (renews)
    for (const std::size_t s : {0U, 1U})
      if (now[s]) renew(matrix.side(s), *now[s], static_cast<std::int64_t>(s), v, segment);
  if (renews)
    turn(bases(true), plain, true);
  else
    turn(now, plain, true);
  m.copy_(plain);
}

} // namespace

std::array<std::int64_t, 2> soap_sides(const Segment& segment, const Hyperparameters& h) {
  if (segment.rows == 0) return {0, 0};
  const auto side = [&](std::int64_t n, bool vocabulary) {
    return n <= h.precondition_limit && (!vocabulary || h.precondition_vocabulary) ? n : 0;
  };
  return {side(segment.rows, segment.vocabulary_rows), side(segment.columns, false)};
}

template <class Real>
StepResult soap_step(const Arena<Real>& arena, const Hyperparameters& h, const StepContext& context) try {
  const double norm = norm_of(arena, context);
  if (!std::isfinite(norm)) return {.gradient_norm = norm};
  const double scale = clip_scale(norm, h.clip);
  if (scale * norm > std::sqrt(static_cast<double>(std::numeric_limits<float>::max())))
    throw DivergedError("the gradient's length, {:g}, squared is beyond float32: SOAP cannot sum it up", scale * norm);

  const at::NoGradGuard guard;
  const bool first = context.taken == 0;
  const auto count = static_cast<std::int64_t>(context.taken) + (h.apply_first_step ? 1 : 0);
  const double lr = h.lr * context.lr_factor, k = static_cast<double>(count);
  Factors<Real> factors{.scale = static_cast<Real>(scale),
                        .rate1 = static_cast<Real>(1 - h.beta1),
                        .beta2 = static_cast<Real>(h.beta2),
                        .rate2 = static_cast<Real>(1 - h.beta2),
                        .epsilon = static_cast<Real>(h.epsilon),
                        .step_size = static_cast<Real>(
                            count == 0 ? 0 : lr * std::sqrt(1 - std::pow(h.beta2, k)) / (1 - std::pow(h.beta1, k))),
                        .keep = 1};
  Factors<Real> decaying = factors;
  decaying.keep = static_cast<Real>(1 - lr * h.weight_decay);

  StepResult result{.gradient_norm = norm};
  std::vector<Segment> others; // what is not turned: Adam
  for (std::size_t s = 0; s < arena.segments.size(); ++s) {
    const Segment& segment = arena.segments[s];
    const std::array<Real*, 2> sides = arena.sides.empty() ? std::array<Real*, 2>{} : arena.sides[s];
    if (sides[0] == nullptr && sides[1] == nullptr) {
      others.push_back(segment);
      continue;
    }
    const Matrix<Real> matrix{.segment = segment,
                              .sides = sides,
                              .theta = arena.theta + segment.offset,
                              .m = arena.state[0] + segment.offset,
                              .v = arena.state[1] + segment.offset,
                              .grad = arena.grad + segment.offset};
    matrix_step(matrix, h, count, first, segment.decay ? decaying : factors, result.fallbacks);
  }
  if (count == 0) return result;
  for_blocks(blocks_of(others), count_of(others), context.threads, [&](std::size_t, const Block& b) {
    std::array<Real, 1024> direction;
    for (std::int64_t i = b.begin; i < b.end; i += std::ssize(direction)) {
      const std::int64_t n = std::min(std::ssize(direction), b.end - i);
      const Factors<Real>& f = others[b.segment].decay ? decaying : factors;
      moments_pass(direction.data(), arena.grad + i, arena.state[0] + i, arena.state[1] + i, n, f);
      move_pass(arena.theta + i, direction.data(), n, f);
    }
  });
  return result;
} catch (const c10::Error& error) {
  throw Error("SOAP: {}", error.what_without_backtrace());
}

template StepResult soap_step(const Arena<float>&, const Hyperparameters&, const StepContext&);
template StepResult soap_step(const Arena<double>&, const Hyperparameters&, const StepContext&);

} // namespace noether::optimizers
