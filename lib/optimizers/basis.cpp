// Source of the block form of reflections, T^-1 = strict upper part of V^T V + 1 / scales: Puglisi, "Modification of
// the Householder method based on the compact WY representation", SIAM J. Sci. Stat. Comput. 13 (1992).
#include "optimizers/basis.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/geqrf.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_householder_product.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>

// In every LibTorch 2 from 2.6, though its header is not installed.
namespace at::native {
TORCH_API void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& result, float beta, float alpha);
}

namespace noether::optimizers {
namespace {

constexpr std::int64_t kPanel = 128;

} // namespace

at::Tensor product(const at::Tensor& x, const at::Tensor& W) {
  if (x.scalar_type() != at::kFloat) return at::mm(x, W.t());
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, c10::string_view,
                               c10::List<std::optional<at::Scalar>>, std::optional<c10::string_view>);
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "").typed<Signature>();
  const c10::List<std::optional<at::Scalar>> scalars;
  return operation.call(x, W, std::nullopt, "none", scalars, std::nullopt);
}

void add_to_factor(const at::Tensor& side, const at::Tensor& X, double weight) {
  constexpr std::int64_t kRows = 768; // half of the arithmetic is saved by the blocks above the diagonal alone
  const std::int64_t n = side.size(1);
  for (std::int64_t begin = 0; begin < n; begin += kRows) {
    const std::int64_t end = std::min(begin + kRows, n);
    const at::Tensor block = product(X.slice(0, begin, end), X.slice(0, begin, n)); // [end - begin, n - begin]
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
    Panel panel{.begin = begin, .V = {}, .V_transposed = {}, .T = {}};
    panel.V = lower.slice(0, begin, size_).slice(1, begin, begin + width).tril(-1);
    panel.V.diagonal().fill_(1);
    panel.V_transposed = panel.V.t().contiguous();
    const at::Tensor scale = scales.slice(0, begin, begin + width);
    // A reflection of scale 0 is none: no vector, and any scale.
    const at::Tensor none = scale.eq(0);
    panel.V.masked_fill_(none.unsqueeze(0), 0);
    panel.V_transposed.masked_fill_(none.unsqueeze(1), 0);
    at::Tensor inverse = product(panel.V_transposed, panel.V_transposed).triu(1);
    inverse.diagonal().copy_(scale.masked_fill(none, 1).reciprocal());
    panel.T = at::linalg_solve_triangular(inverse, at::eye(width, inverse.options()), /*upper=*/true).contiguous();
    panels_.push_back(std::move(panel));
  }
}

at::Tensor Basis::reflected(const at::Tensor& X, bool transposed) const {
  const at::Tensor Y = X.clone(at::MemoryFormat::Contiguous);
  const auto count = static_cast<std::int64_t>(panels_.size());
  for (std::int64_t k = 0; k < count; ++k) {
    const Panel& panel = panels_[static_cast<std::size_t>(transposed ? k : count - 1 - k)];
    // rows <- rows - V (T (V^T rows)), added into its place: the rows go through memory twice.
    const at::Tensor rows = Y.slice(0, panel.begin, size_);
    const at::Tensor seen = at::empty({panel.T.size(0), Y.size(1)}, Y.options()), scaled = at::empty_like(seen);
    at::native::mkldnn_matmul(panel.V_transposed, rows, seen, 0, 1);
    at::native::mkldnn_matmul(transposed ? panel.T.t() : panel.T, seen, scaled, 0, 1);
    at::native::mkldnn_matmul(panel.V, scaled, rows, 1, -1);
  }
  return Y;
}

at::Tensor Basis::forth(const at::Tensor& X) const {
  return Q_.defined() ? product(Q_.t().contiguous(), X.t()) : reflected(X, true);
}
at::Tensor Basis::back(const at::Tensor& X) const { return Q_.defined() ? product(Q_, X.t()) : reflected(X, false); }
at::Tensor Basis::formed() const {
  return Q_.defined() ? Q_ : reflected(at::eye(size_, panels_.front().V.options()), false);
}

} // namespace noether::optimizers
