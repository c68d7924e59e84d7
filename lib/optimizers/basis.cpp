// Source of the block form of reflections, T^-1 = strict upper part of V^T V + 1 / scales: Puglisi, "Modification of
// the Householder method based on the compact WY representation", SIAM J. Sci. Stat. Comput. 13 (1992).
#include "optimizers/basis.h"

#include "products/product.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/geqrf.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_householder_product.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <c10/util/Exception.h>

#include <array>

namespace noether::optimizers {
namespace {

using products::product;

constexpr std::int64_t kPanel = 128;

} // namespace

void add_to_factor(const at::Tensor& side, const at::Tensor& X, double weight) {
  constexpr std::int64_t kRows = 256; // half of the arithmetic is saved by the blocks above the diagonal alone
  const std::int64_t n = side.size(1);
  for (std::int64_t begin = 0; begin < n; begin += kRows) {
    const std::int64_t end = std::min(begin + kRows, n);
    const at::Tensor block = at::empty({end - begin, n - begin}, side.options());
    products::multiply(block, X.slice(0, begin, end), X.slice(0, begin, n).t());
    AT_DISPATCH_FLOATING_TYPES(side.scalar_type(), "add_to_factor", [&] {
      scalar_t* const to = side.data_ptr<scalar_t>();
      const scalar_t* const from = block.data_ptr<scalar_t>();
      const auto w = static_cast<scalar_t>(weight);
      at::parallel_for(begin, end, 32, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i)
          for (std::int64_t j = i; j < n; ++j) {
            scalar_t& x = to[i * n + j];
            x += w * (from[(i - begin) * (n - begin) + j - begin] - x);
          }
      });
    });
  }
}

at::Tensor factor_of(const at::Tensor& side) {
  const at::Tensor upper = side.slice(0, 0, side.size(1)).triu();
  return upper + upper.t().tril(-1);
}

void set_basis(const at::Tensor& side, const at::Tensor& A) {
  const auto [reflections, scales] = at::geqrf(A);
  const at::Tensor rows = reflections.to(side.scalar_type()).contiguous();
  const at::Tensor last = scales.to(side.scalar_type());
  const std::int64_t n = side.size(1);
  AT_DISPATCH_FLOATING_TYPES(side.scalar_type(), "set_basis", [&] {
    scalar_t* const to = side.data_ptr<scalar_t>();
    const scalar_t* const from = rows.data_ptr<scalar_t>();
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(from + i * n, i, to + i * n);
    std::copy_n(last.data_ptr<scalar_t>(), n, to + n * n);
  });
}

at::Tensor decomposed(const at::Tensor& A) { return std::get<1>(at::linalg_eigh(A, "L")); }

at::Tensor eigenvectors(const at::Tensor& factor, int& fallbacks, at::Tensor (*in_float32)(const at::Tensor&)) {
  // The published program rounds factors to float32, and in a float64 run decomposes those in float64.
  const at::Tensor rounded = factor.to(at::kFloat);
  if (factor.scalar_type() == at::kFloat) {
    try {
      const at::Tensor Q = in_float32(rounded);
      if (Q.isfinite().all().item<bool>()) return Q.flip(1);
    } catch (const c10::Error&) { // it did not converge
    }
    ++fallbacks;
  }
  return decomposed(rounded.to(at::kDouble)).flip(1).to(factor.scalar_type());
}

Basis::Basis(const at::Tensor& side, bool in_float32, std::int64_t formed_up_to) : size_(side.size(1)) {
  const at::Tensor lower = side.slice(0, 0, size_), scales = side.select(0, size_);
  if (size_ <= formed_up_to || side.scalar_type() == at::kDouble) {
    const auto type = in_float32 ? at::kFloat : side.scalar_type();
    Q_ = at::linalg_householder_product(lower.to(type), scales.to(type)).to(side.scalar_type()).contiguous();
    return;
  }
  for (std::int64_t begin = 0; begin < size_; begin += kPanel) {
    const std::int64_t width = std::min(kPanel, size_ - begin);
    Panel panel{.begin = begin, .V = {}, .T = {}};
    panel.V = lower.slice(0, begin, size_).slice(1, begin, begin + width).tril(-1);
    panel.V.diagonal().fill_(1);
    const at::Tensor scale = scales.slice(0, begin, begin + width);
    // A reflection of scale 0 is none: no vector, and any scale.
    const at::Tensor none = scale.eq(0);
    panel.V.masked_fill_(none.unsqueeze(0), 0);
    at::Tensor inverse = at::empty({width, width}, panel.V.options());
    products::multiply(inverse, panel.V.t(), panel.V);
    inverse.triu_(1);
    inverse.diagonal().copy_(scale.masked_fill(none, 1).reciprocal());
    panel.T = at::linalg_solve_triangular(inverse, at::eye(width, inverse.options()), /*upper=*/true).contiguous();
    panels_.push_back(std::move(panel));
  }
}

/// part: the rows or columns that the panel's reflections move.
void Basis::reflect(const Panel& panel, const at::Tensor& part, Hand hand, bool forth) {
  const bool left = hand == Hand::left;
  const at::Tensor T = forth == left ? panel.T.t() : panel.T;
  const auto shape = left ? std::array{T.size(0), part.size(1)} : std::array{part.size(0), T.size(0)};
  const at::Tensor seen = at::empty(shape, part.options()), scaled = at::empty(shape, part.options());
  // part <- part - V (T (V^T part)), or part - ((part V) T) V^T: it goes through memory twice.
  if (left) {
    products::multiply(seen, panel.V.t(), part);
    products::multiply(scaled, T, seen);
    products::multiply(part, panel.V, scaled, 1, -1);
  } else {
    products::multiply(seen, part, panel.V);
    products::multiply(scaled, seen, T);
    products::multiply(part, scaled, panel.V.t(), 1, -1);
  }
}

void Basis::turn(const at::Tensor& X, Hand hand, bool forth) const {
  const std::int64_t dimension = hand == Hand::left ? 0 : 1, count = std::ssize(panels_);
  for (std::int64_t k = 0; k < count; ++k) {
    const Panel& panel = panels_[static_cast<std::size_t>(forth ? k : count - 1 - k)];
    reflect(panel, X.slice(dimension, panel.begin, size_), hand, forth);
  }
}

void Basis::forth(at::Tensor& X, Hand hand) const {
  if (!Q_.defined()) return turn(X, hand, true);
  X = hand == Hand::left ? product(Q_.t().contiguous(), X.t()) : product(X, Q_.t());
}
void Basis::back(at::Tensor& X, Hand hand) const {
  if (!Q_.defined()) return turn(X, hand, false);
  X = hand == Hand::left ? product(Q_, X.t()) : product(X, Q_);
}
at::Tensor Basis::formed() const {
  if (Q_.defined()) return Q_;
  at::Tensor Q = at::eye(size_, panels_.front().V.options());
  for (auto panel = panels_.rbegin(); panel != panels_.rend(); ++panel) // what is before its rows is still that of eye
    reflect(*panel, Q.slice(0, panel->begin).slice(1, panel->begin), Hand::left, false);
  return Q;
}

} // namespace noether::optimizers
