// The products and the head's cross-entropy against LibTorch's plain operations in float64, and against finite
// differences.
#include "models/linear.h"

#include "base/error.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <torch/csrc/autograd/autograd.h>

using namespace noether;
using namespace noether::models;

namespace {

double largest(const at::Tensor& difference) { return difference.abs().max().item<double>(); }

struct Products {
  at::Tensor y, dx, dW, db;
};

/// y, and the gradients of sum(y * weights).
Products with_gradients(const std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>& f,
                        at::Tensor x, at::Tensor W, at::Tensor b, const at::Tensor& weights) {
  x = x.detach().clone().set_requires_grad(true);
  W = W.detach().clone().set_requires_grad(true);
  b = b.detach().clone().set_requires_grad(true);
  const at::Tensor y = f(x, W, b);
  (y * weights).sum().backward();
  return {y.detach(), x.grad(), W.grad(), b.grad()};
}

} // namespace

TEST(Linear, AgreesWithFloat64ForwardAndBackward) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({3, 37, 24}), W = at::randn({40, 24}), b = at::randn({40}),
                   weights = at::randn({3, 37, 40});
  const auto exact = with_gradients([](const auto& X, const auto& M, const auto& B) { return at::linear(X, M, B); },
                                    x.to(at::kDouble), W.to(at::kDouble), b.to(at::kDouble), weights.to(at::kDouble));
  // A float32 sum of n products of numbers near 1 errs by a few n^(1/2) 2^-24; bfloat16 rounds each factor to 2^-9.
  for (const auto& [precision, tolerance] : {std::pair{Precision::f32, 1e-4}, std::pair{Precision::bf16, 0.3}}) {
    const auto got = with_gradients(
        [p = precision](const auto& X, const auto& M, const auto& B) { return linear(X, M, B, p); }, x, W, b, weights);
    EXPECT_EQ(got.y.scalar_type(), at::kFloat);
    EXPECT_LT(largest(got.y - exact.y), tolerance);
    EXPECT_LT(largest(got.dx - exact.dx), tolerance);
    EXPECT_LT(largest(got.dW - exact.dW), tolerance);
    EXPECT_LT(largest(got.db - exact.db), tolerance);
  }
}

TEST(Linear, HasASecondDerivative) {
  // For f = sum((W x)^2) / 2 along x the gradient is W^T W x, and its derivative along v is W^T W v: in float64, to
  // rounding.
  const at::Tensor W = at::randn({5, 4}, at::kDouble), v = at::randn({1, 4}, at::kDouble);
  const at::Tensor x = at::randn({1, 4}, at::kDouble).set_requires_grad(true);
  const at::Tensor f = linear(x, W.clone().set_requires_grad(true), {}, Precision::f32).pow(2).sum() / 2;
  const at::Tensor gradient = torch::autograd::grad({f}, {x}, {}, true, true)[0];
  const at::Tensor second = torch::autograd::grad({(gradient * v).sum()}, {x})[0];
  EXPECT_LT(largest(second - v.mm(W.t()).mm(W)), 1e-12);
}

TEST(HeadCrossEntropy, AgreesWithThePlainOperationsInChunksOfAnySize) {
  at::manual_seed(2);
  // 1300 rows are three chunks of 512; a vocabulary of 9 is a single one of many rows.
  for (const std::int64_t vocabulary : {9, 9000}) {
    const at::Tensor h = at::randn({1300, 8}), W = at::randn({vocabulary, 8});
    at::Tensor targets = at::randint(vocabulary, {1300}, at::kLong);
    targets.slice(0, 100, 200).fill_(-1);
    const double scale = 1.0 / 1200;

    const at::Tensor exact_h = h.to(at::kDouble).set_requires_grad(true),
                     exact_W = W.to(at::kDouble).set_requires_grad(true);
    const at::Tensor each = at::cross_entropy_loss(exact_h.mm(exact_W.t()), targets, {}, at::Reduction::None, -1);
    const at::Tensor exact = each.sum() * scale;
    exact.backward();

    const at::Tensor got_h = h.clone().set_requires_grad(true), got_W = W.clone().set_requires_grad(true);
    const at::Tensor got = head_cross_entropy(got_h, got_W, targets, scale, Precision::f32);
    got.backward();
    EXPECT_NEAR(got.item<double>(), exact.item<double>(), 1e-6 * exact.item<double>());
    EXPECT_LT(largest(got_h.grad() - exact_h.grad()), 1e-7); // gradients are of order scale, 1e-3
    EXPECT_LT(largest(got_W.grad() - exact_W.grad()), 1e-6);
    EXPECT_LT(largest(head_token_losses(h, W, targets, Precision::f32) - each), 1e-5);
  }
}

TEST(HeadCrossEntropy, ScalesItsGradientWithWhatComesBack) {
  const at::Tensor h = at::randn({4, 3}).set_requires_grad(true), W = at::randn({5, 3});
  const at::Tensor targets = at::tensor({0, 1, 2, 3}, at::kLong);
  head_cross_entropy(h, W, targets, 1, Precision::f32).backward();
  const at::Tensor once = h.grad().clone();
  h.mutable_grad().zero_();
  (head_cross_entropy(h, W, targets, 1, Precision::f32) * 3).backward();
  EXPECT_LT(largest(h.grad() - 3 * once), 1e-6);
}

TEST(Precision, IsOneOfThreeWords) {
  EXPECT_EQ(precision_of("f32"), Precision::f32);
  EXPECT_EQ(precision_of("bf16"), Precision::bf16);
  EXPECT_NO_THROW(precision_of("auto"));
  EXPECT_THROW(precision_of("f16"), UsageError);
}
