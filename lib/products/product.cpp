#include "products/product.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>

// In every LibTorch 2 from 2.6, though its header is not installed.
namespace at::native {
TORCH_API void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& result, float beta, float alpha);
}

namespace noether::products {
namespace {

/// Whether oneDNN is asked by name: LibTorch's own way is MKL in float32 and float64, and oneDNN in bfloat16.
bool by_onednn(const at::Tensor& x) {
#if defined(__x86_64__)
  static const bool intel = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("intel") != 0;
  }();
#else
  constexpr bool intel = false;
#endif
  return x.scalar_type() == at::kFloat && !intel;
}

} // namespace

at::Tensor product(const at::Tensor& x, const at::Tensor& W, const std::optional<at::Tensor>& b) {
  if (!by_onednn(x)) return at::linear(x, W, b);
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, c10::string_view,
                               c10::List<std::optional<at::Scalar>>, std::optional<c10::string_view>);
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "").typed<Signature>();
  const c10::List<std::optional<at::Scalar>> scalars;
  return operation.call(x, W, b, "none", scalars, std::nullopt);
}

void multiply(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b, float beta, float alpha) {
  if (by_onednn(a)) return at::native::mkldnn_matmul(a, b, result, beta, alpha);
  at::Tensor out = result;
  at::addmm_out(out, result, a, b, beta, alpha);
}

} // namespace noether::products
