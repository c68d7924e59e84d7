// Lanczos against matrices whose eigenvalues are known, and the Hessian against differences of gradients.
#include "evaluation/sharpness.h"

#include "base/error.h"
#include "evaluation/fixtures.h"
#include "models/model.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/zeros.h>

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace noether::evaluation {
namespace {

// The second difference on n points: eigenvalues 2 - 2 cos(k pi / (n + 1)), in closed form.
TEST(LargestEigenvalues, AreThoseOfTheSecondDifference) {
  constexpr std::int64_t n = 40;
  std::int64_t products = 0;
  const auto found = largest_eigenvalues<float>(
      n, {.count = 3, .iterations = n, .tolerance = 1e-6},
      [&](std::span<const float> v, std::span<float> out) {
        ++products;
        for (std::size_t i = 0; i < v.size(); ++i)
          out[i] = 2 * v[i] - (i > 0 ? v[i - 1] : 0) - (i + 1 < v.size() ? v[i + 1] : 0);
      },
      [](std::int64_t, double) {});
  ASSERT_EQ(found.size(), 3U);
  for (int k = 0; k < 3; ++k)
    EXPECT_NEAR(found[static_cast<std::size_t>(k)].value, 2 - 2 * std::cos((n - k) * std::numbers::pi / (n + 1)), 2e-5);
  EXPECT_LE(products, n);
}

// Of rank 1: found at once, and there is nothing else.
TEST(LargestEigenvalues, StopWhenTheSpaceIsUsedUp) {
  std::int64_t products = 0;
  const auto found = largest_eigenvalues<float>(
      1000, {.count = 5},
      [&](std::span<const float> v, std::span<float> out) {
        ++products;
        double sum = 0;
        for (const float x : v) sum += x;
        for (float& x : out) x = static_cast<float>(sum * 3);
      },
      [](std::int64_t, double) {});
  EXPECT_LE(products, 4);
  EXPECT_NEAR(found[0].value, 3000, 0.1);
}

TEST(Sharpness, IsTheLargestEigenvalueOfTheHessian) {
  for (const bool broken : {false, true}) {
    architecture::Config config = small_config(258);
    config.layers = 1;
    config.heads = config.kv_heads = 1;
    config.width = config.head_width = 4;
    config.hidden = 4;
    config.context = 8;
    if (broken) config.symmetry_break = architecture::Break::qv;
    architecture::Checkpoint checkpoint = small_checkpoint(config);
    const text::TokenFile tokens = token_file(*checkpoint.tokenizer, random_documents(3, 6, 258));
    Reporter reporter("test", Verbosity::quiet);
    SharpnessOptions options;
    options.lanczos = {.count = 3, .iterations = 200, .tolerance = 1e-5};
    options.windows = 5;
    options.batch = 2;
    const Sharpness found = sharpness(checkpoint, tokens, options, reporter);
    ASSERT_EQ(found.eigenvalues.size(), 3U);
    EXPECT_EQ(found.tokens, 40);

    // The whole Hessian, column by column from differences of the training loss' gradients: those err by h^2 and by
    // rounding over h, some 1e-3 of the largest entries here.
    std::vector<std::int64_t> ids(5 * 9);
    const auto last = static_cast<std::int64_t>(tokens.size()) - 9;
    for (std::int64_t i = 0; i < 5; ++i) tokens.read(static_cast<std::uint64_t>(last * i / 4), 9, ids.data() + 9 * i);
    const at::Tensor rows = at::from_blob(ids.data(), {5, 9}, at::kLong);
    const std::int64_t n = checkpoint.parameters.size();
    architecture::Arena gradients(n);
    const models::Model model = models::bind(config, checkpoint.parameters, &gradients);
    const auto gradient = [&] {
      std::fill(gradients.span().begin(), gradients.span().end(), 0.0F);
      models::loss(model, rows.slice(1, 0, 8), rows.slice(1, 1), models::mean_biases(config), 1.0 / 40).backward();
      return at::from_blob(gradients.data(), {n}, at::kFloat).to(at::kDouble);
    };
    at::Tensor hessian = at::zeros({n, n}, at::kDouble);
    for (std::int64_t i = 0; i < n; ++i) {
      float& x = checkpoint.parameters.data()[i];
      const float old = x;
      const double h = 4e-3;
      x = old + static_cast<float>(h);
      const at::Tensor up = gradient();
      x = old - static_cast<float>(h);
      hessian[i] = (up - gradient()) / (2 * h);
      x = old;
    }
    const at::Tensor values = std::get<0>(at::linalg_eigh((hessian + hessian.t()) / 2));
    for (std::int64_t k = 0; k < 3; ++k)
      EXPECT_NEAR(found.eigenvalues[static_cast<std::size_t>(k)].value, values[n - 1 - k].item<double>(),
                  5e-3 * values[n - 1].item<double>());
  }
}

// Of f = mean (u w s - y)^2 / 2 the Hessian is [[w^2 kappa, e], [e, u^2 kappa]], e = 2 u w kappa - nu, in closed form.
TEST(Sharpness, OfTwoFactorsIsTheClosedForm) {
  const regression::Regression prompts(
      regression::draw_prompts({.count = 5, .pairs = 6, .dimension = 3, .noise = 0.2, .seed = 4}));
  const auto [kappa, nu] = std::pair{prompts.moments().kappa, prompts.moments().nu};
  for (const auto& [u, w] : {std::pair{0.5, 0.4}, {1.5, -0.2}, {0.0, 0.0}}) {
    const Sharpness found =
        sharpness(regression::start({.dimension = 3, .value = u, .key_query = w}), prompts, {.count = 2});
    EXPECT_EQ(found.tokens, 5);
    ASSERT_EQ(found.eigenvalues.size(), 2U);
    const double a = w * w * kappa, b = u * u * kappa, e = 2 * u * w * kappa - nu, root = std::hypot((a - b) / 2, e);
    EXPECT_NEAR(found.eigenvalues[0].value, (a + b) / 2 + root, 1e-12);
    EXPECT_NEAR(found.eigenvalues[1].value, (a + b) / 2 - root, 1e-12);
  }
}

// With whole matrices, against the Hessian from differences of gradients.
TEST(Sharpness, OfMatricesIsTheLargestOfTheWholeHessian) {
  const regression::Regression prompts(
      regression::draw_prompts({.count = 7, .pairs = 5, .dimension = 2, .noise = 0.1, .seed = 9}));
  const regression::LinearTransformer model =
      regression::start({.dimension = 2, .matrices = true, .deviation = 0.3, .seed = 2});
  constexpr std::int64_t n = 9; // 3 of W_V, 6 of W_KQ
  at::Tensor hessian = at::zeros({n, n}, at::kDouble);
  const auto gradient = [&](std::int64_t i, double h) {
    regression::LinearTransformer moved = model, found;
    (i < 3 ? moved.value[static_cast<std::size_t>(i)] : moved.key_query[static_cast<std::size_t>(i - 3)]) += h;
    prompts.loss(moved, {}, found);
    std::vector<double> all = found.value;
    all.insert(all.end(), found.key_query.begin(), found.key_query.end());
    return at::from_blob(all.data(), {n}, at::kDouble).clone();
  };
  const double h = 1e-5; // errors: h^2, and 1e-16 / h
  for (std::int64_t i = 0; i < n; ++i) hessian[i] = (gradient(i, h) - gradient(i, -h)) / (2 * h);
  const at::Tensor values = std::get<0>(at::linalg_eigh((hessian + hessian.t()) / 2));
  const Sharpness found = sharpness(model, prompts, {.count = 3, .tolerance = 1e-9});
  for (std::int64_t k = 0; k < 3; ++k)
    EXPECT_NEAR(found.eigenvalues[static_cast<std::size_t>(k)].value, values[n - 1 - k].item<double>(), 1e-8);
}

TEST(Sharpness, RefusesTokensThatAreTooFew) {
  architecture::Checkpoint checkpoint = small_checkpoint(small_config(258));
  const text::TokenFile tokens = token_file(*checkpoint.tokenizer, {{1, 2, 3}});
  Reporter reporter("test", Verbosity::quiet);
  EXPECT_THROW(sharpness(checkpoint, tokens, {}, reporter), Error);
}

} // namespace
} // namespace noether::evaluation
