// The one place where matrices are multiplied: by whichever of LibTorch's two libraries is the faster one on this
// processor. In exact float32 oneDNN has about twice MKL's rate on AMD's processors, at the same relative error; on
// Intel's MKL is as fast, and where rows are thousands of numbers long up to twice as fast.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace noether::products {

/// x W^T + b, in x's type. x: [r, k] dense; W: [c, k] of any strides; b: [c]. float32 is exact, whatever models' own
/// products are rounded to; of bfloat16 the sums are float32.
at::Tensor product(const at::Tensor& x, const at::Tensor& W, const std::optional<at::Tensor>& b = {});

/// result <- beta result + alpha a b. a: [r, k], b: [k, c], of any strides; result: [r, c], its rows dense. Of one
/// type.
void multiply(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b, float beta = 0, float alpha = 1);

} // namespace noether::products
