// Noether's condition itself: where the loss does not change when weights are rotated, its gradient's angular momentum
// is zero, and where a symmetry is broken it is not.
#include "models/conserved.h"

#include "architecture/presets.h"
#include "models/model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace noether;
using namespace noether::architecture;
using namespace noether::models;

namespace {

struct Variant {
  std::string family;
  std::function<void(Config&)> change;
  bool symmetric_qk, symmetric_vo;
};

/// A model with large enough weights, and the gradient of its loss on random tokens.
struct Case {
  Checkpoint checkpoint;
  Arena gradients;

  explicit Case(const Variant& variant) {
    Config config =
        describe(variant.family, {.layers = 2, .heads = 4, .width = 32, .hidden = 48, .context = 16, .vocab_size = 50});
    variant.change(config);
    validate(config);
    checkpoint = initialise(config, 5, 1);
    for (const Parameter& parameter : checkpoint.layout)
      if (parameter.group == Group::attention || parameter.group == Group::embedding)
        for (std::int64_t i = 0; i < parameter.count; ++i) checkpoint.parameters.data()[parameter.offset + i] *= 5;
    for (const Parameter& parameter : checkpoint.layout) // fresh biases are zero, and would test nothing
      if (parameter.name.find("/b_") != std::string::npos)
        for (std::int64_t i = 0; i < parameter.count; ++i)
          checkpoint.parameters.data()[parameter.offset + i] = 0.3F * std::sin(static_cast<float>(7 * i + 1));
    gradients = Arena(checkpoint.parameters.size());
    const Model model = bind(config, checkpoint.parameters, &gradients);
    at::manual_seed(3);
    const at::Tensor tokens = at::randint(50, {3, 16}, at::kLong), targets = at::randint(50, {3, 16}, at::kLong);
    loss(model, tokens, targets, sampled_biases(config, 1, 1), 1.0 / 48).backward();
  }
  /// Parameters moved along the gradient.
  Arena moved(double by) const {
    Arena arena(checkpoint.parameters.size());
    for (std::int64_t i = 0; i < arena.size(); ++i)
      arena.data()[i] = static_cast<float>(static_cast<double>(checkpoint.parameters.data()[i]) +
                                           by * static_cast<double>(gradients.data()[i]));
    return arena;
  }
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{
      {"gpt2", [](Config&) {}, true, true},
      {"gpt2", [](Config& c) { c.kv_heads = 2; }, true, true},
      {"llama", [](Config& c) { c.kv_heads = 2; }, true, true},
      {"llama", [](Config& c) { c.rope_fraction = 0.5; }, true, true},
      {"gpt2", [](Config& c) { c.symmetry_break = Break::q; }, false, true},
      {"gpt2", [](Config& c) { c.symmetry_break = Break::v; }, true, false},
      {"llama", [](Config& c) { c.symmetry_break = Break::qv; }, false, false},
  };
  return all;
}

/// At most `rounding` where a symmetry makes it zero, and far from it where that is broken.
void expect_zero(double value, bool symmetric, double rounding) {
  if (symmetric)
    EXPECT_LT(value, rounding);
  else
    EXPECT_GT(value, 3e-4);
}

TEST(AngularMomentum, OfTheGradientIsZeroWhereTheLossIsSymmetric) {
  for (const Variant& variant : variants()) {
    Case one(variant);
    const HeadMatrices L = angular_momentum(one.checkpoint.config, one.checkpoint.parameters, one.gradients);
    // The gradient has length 1 there, and weights are of order 1: rounding of float32 gradients leaves 1e-6, a broken
    // symmetry a few hundredths.
    const double qk = norms(L.qk).max().item<double>(), vo = norms(L.vo).max().item<double>();
    expect_zero(qk, variant.symmetric_qk, 2e-6);
    expect_zero(vo, variant.symmetric_vo, 2e-6);
    EXPECT_LT((L.qk + L.qk.transpose(-1, -2)).abs().max().item<double>(), 1e-15); // antisymmetric
  }
}

TEST(Balance, DoesNotMoveAlongTheGradientWhereTheLossIsSymmetric) {
  for (const Variant& variant : variants()) {
    const Case one(variant);
    const double by = 0.05;
    Arena forward = one.moved(by), back = one.moved(-by);
    const HeadMatrices a = balance(one.checkpoint.config, forward), b = balance(one.checkpoint.config, back);
    // Central differences: what is left is the derivative, and rounding of the moved weights.
    const double qk = norms(a.qk - b.qk).max().item<double>() / (2 * by),
                 vo = norms(a.vo - b.vo).max().item<double>() / (2 * by);
    expect_zero(qk, variant.symmetric_qk, 5e-5);
    expect_zero(vo, variant.symmetric_vo, 5e-5);
  }
}

TEST(FactorNorms, AddUpToTheWeightsAndDifferByTheBalance) {
  for (const Variant& variant : variants()) {
    Case one(variant);
    const FactorNorms found = factor_norms(one.checkpoint.config, one.checkpoint.parameters);
    double sum = 0, squares = 0;
    for (const at::Tensor& norm : {found.q, found.k, found.v, found.o}) {
      EXPECT_EQ(norm.sizes(), (std::vector<std::int64_t>{2, one.checkpoint.config.kv_heads}));
      sum += norm.square().sum().item<double>();
    }
    for (const Parameter& parameter : one.checkpoint.layout)
      for (const char* name : {"/W_Q", "/W_K", "/W_V", "/W_O", "/b_Q", "/b_K", "/b_V"})
        for (std::int64_t i = 0; parameter.name.ends_with(name) && i < parameter.count; ++i)
          squares += std::pow(static_cast<double>(one.checkpoint.parameters.data()[parameter.offset + i]), 2);
    EXPECT_NEAR(sum, squares, 1e-9 * squares) << variant.family;
    const at::Tensor trace = balance(one.checkpoint.config, one.checkpoint.parameters).vo.diagonal(0, -2, -1).sum(-1);
    EXPECT_LT((found.v.square() - found.o.square() - trace).abs().max().item<double>(), 1e-9 * squares);
  }
}

TEST(AngularMomentum, IsTheFormulaByHand) {
  // One layer, one head of width 2: every entry written out. P is the momentum divided by its length.
  Config config = describe("gpt2", {.layers = 1, .heads = 1, .width = 2, .hidden = 2, .context = 2, .vocab_size = 3});
  Checkpoint checkpoint = initialise(config, 9, 1);
  Arena momentum(checkpoint.parameters.size());
  double length2 = 0;
  for (std::int64_t i = 0; i < momentum.size(); ++i) {
    momentum.data()[i] = std::cos(static_cast<float>(3 * i));
    length2 += static_cast<double>(momentum.data()[i]) * static_cast<double>(momentum.data()[i]);
  }
  const auto entry = [&](const Arena& arena, const char* name, std::int64_t i) {
    for (const Parameter& p : checkpoint.layout)
      if (p.name == std::string("layers/0/attention/") + name) return static_cast<double>(arena.data()[p.offset + i]);
    throw std::runtime_error(name);
  };
  double qk = 0, vo = 0; // entry [0, 1]
  for (const auto& [matrix, bias] : {std::pair{"W_Q", "b_Q"}, std::pair{"W_K", "b_K"}})
    for (std::int64_t j = 0; j < 3; ++j) { // two columns and the bias
      const auto of = [&](const Arena& arena, std::int64_t row) {
        return j < 2 ? entry(arena, matrix, 2 * row + j) : entry(arena, bias, row);
      };
      qk += of(momentum, 0) * of(checkpoint.parameters, 1) - of(checkpoint.parameters, 0) * of(momentum, 1);
    }
  for (std::int64_t j = 0; j < 3; ++j) {
    const auto of = [&](const Arena& arena, std::int64_t row) {
      return j < 2 ? entry(arena, "W_V", 2 * row + j) : entry(arena, "b_V", row);
    };
    vo += of(momentum, 0) * of(checkpoint.parameters, 1) - of(checkpoint.parameters, 0) * of(momentum, 1);
  }
  for (std::int64_t j = 0; j < 2; ++j) // W_O: width x head_width
    vo += entry(momentum, "W_O", 2 * j) * entry(checkpoint.parameters, "W_O", 2 * j + 1) -
          entry(checkpoint.parameters, "W_O", 2 * j) * entry(momentum, "W_O", 2 * j + 1);
  const HeadMatrices L = angular_momentum(config, checkpoint.parameters, momentum);
  EXPECT_NEAR(L.qk[0][0][0][1].item<double>(), qk / std::sqrt(length2), 1e-14);
  EXPECT_NEAR(L.vo[0][0][0][1].item<double>(), vo / std::sqrt(length2), 1e-14);
}

} // namespace
