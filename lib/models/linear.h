// Matrix products of the linear layers, and the head's cross-entropy: where nearly all the time of a model goes.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace noether::models {

/// How products are computed. f32: exact float32. bf16: products of bfloat16 with float32 sums; parameters and
/// everything between products stay float32.
enum class Precision { f32, bf16 };

/// f32 or bf16; auto is bf16 where the processor multiplies it natively (AVX512-BF16, AMX), else f32. Throws UsageError
/// otherwise.
Precision precision_of(std::string_view name);

/// y = x W^T + b. x: [.., in], W: [out, in], b: [out] or undefined. Differentiable, twice.
at::Tensor linear(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b, Precision precision);

/// scale times the sum of cross-entropies in nats of the rows' softmax(h W^T) at `targets`; -1 does not count.
/// h: [N, width], W: [vocab, width], targets: [N] int64. Differentiable once; the gradients are computed with the
/// value, in chunks.
at::Tensor head_cross_entropy(const at::Tensor& h, const at::Tensor& W, const at::Tensor& targets, double scale,
                              Precision precision);

/// The cross-entropy in nats of each row at its target, [N]; 0 where a target is -1. No gradients.
at::Tensor head_token_losses(const at::Tensor& h, const at::Tensor& W, const at::Tensor& targets, Precision precision);

} // namespace noether::models
