// Linear layers and the head's cross-entropy as autograd functions.
#include "models/linear.h"

#include "base/error.h"
#include "products/product.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace noether::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor rounded(const at::Tensor& x, Precision precision) {
  return precision == Precision::bf16 ? x.to(at::kBFloat16) : x;
}

/// x W^T + b, in float32 (or x's float64). Operands are already in the product's precision; b goes with float32 alone.
at::Tensor product(const at::Tensor& x, const at::Tensor& W, const std::optional<at::Tensor>& b = {}) {
  const at::Tensor y = products::product(x, W, b);
  return x.scalar_type() == at::kBFloat16 ? y.to(at::kFloat) : y;
}

/// result = a b, or with `add` result += a b. a, b: of any strides, in the product's precision; result: dense, float32
/// (or a's float64).
void multiply(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b, bool add = false) {
  if (a.scalar_type() == result.scalar_type()) return products::multiply(result, a, b, add ? 1 : 0);
  const at::Tensor y = at::mm(a, b);
  add ? result.add_(y) : result.copy_(y);
}

struct Linear : torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& W,
                            const std::optional<at::Tensor>& b, int precision) {
    const auto kind = static_cast<Precision>(precision);
    const at::Tensor rows = rounded(x, kind);
    context->save_for_backward({kind == Precision::bf16 ? rows : x, W});
    context->saved_data["precision"] = precision;
    context->saved_data["has_bias"] = b.has_value();
    if (kind == Precision::f32) return product(rows, W, b);
    const at::Tensor y = product(rows, rounded(W, kind));
    return b ? y.add_(*b) : y; // not rounded with the product
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &W = saved[1], &dy = gradients[0];
    const auto kind = static_cast<Precision>(context->saved_data["precision"].toInt());
    at::Tensor dx, dW, db;
    if (at::GradMode::is_enabled()) { // a second derivative is wanted: only plain operations have one
      if (context->needs_input_grad(0)) dx = at::mm(dy, W);
      if (context->needs_input_grad(1)) dW = at::mm(dy.t(), x);
    } else {
      const at::Tensor rows = rounded(dy, kind).contiguous();
      if (context->needs_input_grad(0)) multiply(dx = at::empty(x.sizes(), dy.options()), rows, rounded(W, kind));
      if (context->needs_input_grad(1)) multiply(dW = at::empty(W.sizes(), W.options()), rows.t(), x);
    }
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) db = dy.sum(0);
    return {dx, dW, db, Variable()};
  }
};

/// Rows whose logits exist at one time: 16 MB of them, so that they are still in the cache when they are used again,
/// but no fewer than 512, or adding up W's gradient chunk by chunk would cost more than the products.
std::int64_t rows_of_a_chunk(std::int64_t vocabulary) {
  return std::max<std::int64_t>(512, (std::int64_t{1} << 22) / vocabulary / 16 * 16);
}

/// Calls use(begin, end, rows, log_probabilities) for each chunk of rows of h; rows are in the product's precision.
template <class Use>
void for_each_chunk(const at::Tensor& h, const at::Tensor& rounded_W, Precision precision, const Use& use) {
  const std::int64_t count = h.size(0), step = rows_of_a_chunk(rounded_W.size(0));
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t end = std::min(begin + step, count);
    const at::Tensor rows = rounded(h.slice(0, begin, end), precision).contiguous();
    at::Tensor scores = product(rows, rounded_W);
    at::_log_softmax_out(scores, scores, 1, false);
    use(begin, end, rows, scores);
  }
}

/// -log p of each row's target; 0 where it is -1.
at::Tensor picked(const at::Tensor& log_probabilities, const at::Tensor& target) {
  return log_probabilities.gather(1, target.clamp_min(0).unsqueeze(1)).squeeze(1).neg_().masked_fill_(target.lt(0), 0);
}

struct HeadCrossEntropy : torch::autograd::Function<HeadCrossEntropy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& h, const at::Tensor& W,
                            const at::Tensor& targets, double scale, int precision) {
    const auto kind = static_cast<Precision>(precision);
    const bool wants_h = h.requires_grad(), wants_W = W.requires_grad();
    const at::Tensor rounded_W = rounded(W, kind);
    at::Tensor dh = wants_h ? at::empty_like(h) : at::Tensor(), dW = wants_W ? at::zeros_like(W) : at::Tensor();
    double total = 0; // a sum of many chunks: in double
    for_each_chunk(
        h, rounded_W, kind, [&](std::int64_t begin, std::int64_t end, const at::Tensor& rows, at::Tensor& scores) {
          const at::Tensor target = targets.slice(0, begin, end);
          total += picked(scores, target).sum(at::kDouble).item<double>();
          if (!wants_h && !wants_W) return;
          scores.exp_(); // softmax, less one at the target, is the gradient
          scores.scatter_add_(1, target.clamp_min(0).unsqueeze(1), at::full({end - begin, 1}, -1.0, scores.options()));
          scores.mul_(target.ge(0).to(scores.scalar_type()).mul_(scale).unsqueeze(1));
          const at::Tensor d = rounded(scores, kind);
          if (wants_h) multiply(dh.slice(0, begin, end), d, rounded_W);
          if (wants_W) multiply(dW, d.t(), rows, true);
        });
    context->save_for_backward({dh, dW});
    return at::scalar_tensor(total * scale, h.options());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    // The gradient was made for d loss = 1, which is what backward() of a loss starts from.
    const bool one = gradients[0].item<double>() == 1;
    const auto scaled = [&](const at::Tensor& d) { return d.defined() && !one ? d * gradients[0] : d; };
    return {scaled(saved[0]), scaled(saved[1]), Variable(), Variable(), Variable()};
  }
};

bool multiplies_bf16() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

} // namespace

Precision precision_of(std::string_view name) {
  if (name == "f32") return Precision::f32;
  if (name == "bf16") return Precision::bf16;
  if (name == "auto") return multiplies_bf16() ? Precision::bf16 : Precision::f32;
  throw UsageError("--precision: expected f32, bf16 or auto, found {}", name);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b, Precision precision) {
  const at::Tensor rows = x.reshape({-1, x.size(-1)});
  const at::Tensor y =
      Linear::apply(rows, W, b.defined() ? std::optional(b) : std::nullopt, static_cast<int>(precision));
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = W.size(0);
  return y.view(shape);
}

at::Tensor head_cross_entropy(const at::Tensor& h, const at::Tensor& W, const at::Tensor& targets, double scale,
                              Precision precision) {
  return HeadCrossEntropy::apply(h, W, targets, scale, static_cast<int>(precision));
}

at::Tensor head_token_losses(const at::Tensor& h, const at::Tensor& W, const at::Tensor& targets, Precision precision) {
  const at::NoGradGuard guard;
  at::Tensor losses = at::empty(targets.sizes(), h.options());
  for_each_chunk(h, rounded(W, precision), precision,
                 [&](std::int64_t begin, std::int64_t end, const at::Tensor&, const at::Tensor& scores) {
                   losses.slice(0, begin, end).copy_(picked(scores, targets.slice(0, begin, end)));
                 });
  return losses;
}

} // namespace noether::models
