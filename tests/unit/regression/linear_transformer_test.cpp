#include "regression/linear_transformer.h"

#include "base/error.h"
#include "base/random.h"
#include "maps/several.h"
#include "store/scratch.h"
#include "store/stream.h"

#include <gtest/gtest.h>

#include <cmath>

namespace noether::regression {
namespace {

LinearTransformer matrices(std::int64_t dimension, double deviation) {
  return start(
      {.dimension = dimension, .matrices = true, .value = 0.7, .key_query = 0.4, .deviation = deviation, .seed = 5});
}

/// Attention as it is written down: whole square matrices, token by token, each with its score.
double attend(const Prompts& prompts, std::int64_t p, const LinearTransformer& model) {
  const std::int64_t d = prompts.dimension, tokens = prompts.pairs + 1;
  std::vector<std::vector<double>> W_V(d + 1, std::vector<double>(d + 1, 0.25)),
      W_KQ(d + 1, std::vector<double>(d + 1, 3));
  for (std::int64_t i = 0; i <= d; ++i) {
    W_V[d][i] = model.value[i]; // what stands in its other rows changes nothing, nor does W_KQ's last column
    for (std::int64_t j = 0; j < d; ++j) W_KQ[i][j] = model.key_query[i * d + j];
  }
  const auto token = [&](std::int64_t i, std::int64_t c) {
    return c < d ? prompts.x[(p * tokens + i) * d + c] : i < prompts.pairs ? prompts.y[p * tokens + i] : 0.0;
  };
  double out = 0;
  for (std::int64_t i = 0; i < tokens; ++i) {
    double score = 0, value = 0;
    for (std::int64_t r = 0; r <= d; ++r) {
      for (std::int64_t c = 0; c <= d; ++c) score += token(i, r) * W_KQ[r][c] * token(prompts.pairs, c);
      value += W_V[d][r] * token(i, r);
    }
    out += value * score / static_cast<double>(prompts.pairs);
  }
  return out;
}

TEST(LinearTransformer, IsLinearAttention) {
  const Prompts prompts = draw_prompts({.count = 4, .pairs = 6, .dimension = 3, .noise = 0.5, .seed = 2});
  const Regression regression(prompts);
  const LinearTransformer model = matrices(3, 0.3);
  for (std::int64_t p = 0; p < 4; ++p) EXPECT_NEAR(regression.prediction(model, p), attend(prompts, p, model), 1e-12);
  // The two factors: u w s.
  const LinearTransformer factors = start({.dimension = 3, .value = 1.5, .key_query = -0.5});
  for (std::int64_t p = 0; p < 4; ++p) {
    double s = 0;
    for (std::int64_t i = 0; i < 6; ++i)
      for (std::int64_t c = 0; c < 3; ++c)
        s +=
            prompts.y[p * 7 + i] * prompts.x[(p * 7 + i) * 3 + c] * prompts.x[(p * 7 + 6) * 3 + c] / 6 / std::sqrt(3.0);
    EXPECT_NEAR(regression.prediction(factors, p), -0.75 * s, 1e-12);
  }
}

TEST(LinearTransformer, GradientIsThatOfFiniteDifferences) {
  const Prompts prompts = draw_prompts({.count = 5, .pairs = 4, .dimension = 2, .noise = 0.5, .seed = 3});
  const Regression regression(prompts);
  const std::vector<std::int64_t> batch{1, 3, 3};
  for (const LinearTransformer& model : {matrices(2, 0.3), start({.dimension = 2, .value = 0.8, .key_query = 0.3})})
    for (const std::span<const std::int64_t> some : {std::span<const std::int64_t>(), std::span(batch)}) {
      LinearTransformer gradient, unused;
      regression.loss(model, some, gradient);
      for (auto part : {&LinearTransformer::value, &LinearTransformer::key_query}) {
        ASSERT_EQ((gradient.*part).size(), (model.*part).size());
        for (std::size_t i = 0; i < (model.*part).size(); ++i) {
          const double h = 1e-5;
          LinearTransformer up = model, down = model;
          (up.*part)[i] += h;
          (down.*part)[i] -= h;
          const double slope = (regression.loss(up, some, unused) - regression.loss(down, some, unused)) / (2 * h);
          // The third derivatives are of the order of the loss itself: h^2 of it remains.
          EXPECT_NEAR((gradient.*part)[i], slope, 1e-8 * std::max(1.0, std::abs(slope)));
        }
      }
    }
}

/// Plain gradient descent on all prompts.
void descend(const Regression& regression, LinearTransformer& model, double lr) {
  LinearTransformer gradient;
  regression.loss(model, {}, gradient);
  for (std::size_t i = 0; i < model.value.size(); ++i) model.value[i] -= lr * gradient.value[i];
  for (std::size_t i = 0; i < model.key_query.size(); ++i) model.key_query[i] -= lr * gradient.key_query[i];
}

/// The model trained beside the map, with the relative distance between them, and what that can be: an error of one
/// rounding or two a step, and each step stretches what there is by the larger eigenvalue of its (symmetric) Jacobian.
struct Race {
  Race(const Prompts& prompts, double at_mu)
      : regression(prompts), moments(regression.moments()), mu(at_mu), lr(mu / moments.nu) {
    const double scale = std::sqrt(lr * moments.kappa);
    model = start({.dimension = prompts.dimension, .value = a / scale, .key_query = b / scale});
  }
  void step() {
    LinearTransformer gradient;
    const double e = a * b - mu, above = regression.loss(model, {}, gradient) - moments.floor;
    const double expected = e * e / (2 * lr * lr * moments.kappa);
    EXPECT_NEAR(above, expected, 1e-12 * (1 + expected + moments.floor) + 10 * std::abs(e) * bound);
    const double off = 2 * e + mu, middle = 1 - (a * a + b * b) / 2, half = (a * a - b * b) / 2;
    bound = bound * (std::abs(middle) + std::hypot(half, off)) + 1e-15;
    descend(regression, model, lr);
    maps::step(a, b, mu);
    const maps::Point at = coordinates(model, moments, lr);
    distance = std::max(std::abs(at.a - a) / std::abs(a), std::abs(at.b - b) / std::abs(b));
  }
  Regression regression;
  Regression::Moments moments;
  double mu, lr, a = 0.9, b = 0.7, distance = 0, bound = 1e-15;
  LinearTransformer model;
};

TEST(LinearTransformer, FollowsTheTwoFactorMap) {
  // One prompt whose s y is positive, for a positive learning rate; and many.
  std::uint64_t seed = 0;
  const auto draw = [&](std::int64_t count) {
    for (;; ++seed) {
      const Prompts prompts = draw_prompts({.count = count, .pairs = 8, .dimension = 3, .noise = 0.2, .seed = seed});
      if (Regression(prompts).moments().nu > 0.1) return prompts;
    }
  };
  for (const std::int64_t count : {1, 40}) {
    const Prompts prompts = draw(count);
    // Monotone, catapult, period 2, period 4: what rounding leaves dies out, or stays.
    for (const double mu : {0.5, 0.95, 1.15, 1.25}) {
      Race race(prompts, mu);
      for (int n = 0; n < 2000 && race.distance < 1e-12; ++n) race.step();
      EXPECT_LT(race.distance, 1e-12) << mu;
    }
    // Chaos stretches it, but by no more than its own Jacobian does.
    Race race(prompts, 1.9);
    int n = 0, close = 0;
    for (; n < 1000 && race.bound < 1e-3; ++n) {
      race.step();
      EXPECT_LT(race.distance, 10 * race.bound) << "step " << n;
      close += race.distance < 1e-12;
    }
    EXPECT_GE(close, 5);
    EXPECT_LT(n, 100);
  }
}

// Several prompts of one x each, whose s is x_q x y: mus = lr s target, scales = s.
TEST(LinearTransformer, FollowsSeveralPromptsOneByOne) {
  const std::vector<double> s{1, 2, -0.5}, target{0.4, 0.9, 1.3};
  const double lr = 0.31;
  Prompts prompts{.count = 3, .pairs = 1, .dimension = 1};
  maps::Prompts several{{}, s};
  for (std::size_t i = 0; i < 3; ++i) {
    prompts.x.insert(prompts.x.end(), {s[i], 1});
    prompts.y.insert(prompts.y.end(), {1, target[i]});
    several.mus.push_back(lr * s[i] * target[i]);
  }
  const Regression regression(prompts);
  const maps::Shared shared = maps::shared(several);
  EXPECT_NEAR(shared.mu, lr * regression.moments().nu, 1e-15);
  EXPECT_NEAR(shared.floor, lr * lr * regression.moments().floor, 1e-15);
  LinearTransformer model = start({.dimension = 1, .value = 0.9, .key_query = 0.7}), gradient;
  maps::Point p{std::sqrt(lr * shared.kappa) * 0.9, std::sqrt(lr * shared.kappa) * 0.7};
  for (int n = 0; n < 300; ++n) {
    const std::vector<double> off = maps::errors(several, shared, p);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(off[i], lr * (regression.prediction(model, static_cast<std::int64_t>(i)) - target[i]), 1e-12);
    EXPECT_NEAR(maps::loss_of(off), lr * lr * regression.loss(model, {}, gradient), 1e-12);
    descend(regression, model, lr);
    maps::step(p.a, p.b, shared.mu);
  }
}

TEST(LinearTransformer, OnePromptHasNoFloorAndManyHaveOne) {
  const Prompts prompts = draw_prompts({.count = 30, .pairs = 8, .dimension = 2, .noise = 0.3, .seed = 1});
  const Regression regression(prompts);
  const auto moments = regression.moments();
  EXPECT_GT(moments.floor, 0);
  EXPECT_EQ(Regression(draw_prompts({.seed = 1})).moments().floor, 0);
  // At the best product of the factors nothing is left of the gradient, and the loss is the floor.
  LinearTransformer model = start({.dimension = 2, .value = 1, .key_query = moments.nu / moments.kappa}), gradient;
  EXPECT_NEAR(regression.loss(model, {}, gradient), moments.floor, 1e-12);
  EXPECT_NEAR(gradient.value[0], 0, 1e-12);
}

TEST(LinearTransformer, MatricesLeaveTheFactorsShapes) {
  const LinearTransformer begin = matrices(3, 0);
  EXPECT_NEAR(factors_of(begin).beside, 0, 1e-15);
  EXPECT_NEAR(factors_of(begin).value, 0.7, 1e-15);
  EXPECT_NEAR(factors_of(begin).key_query, 0.4, 1e-15);
  // On one prompt at once. Over many, whose inputs have no direction of their own, what leads out of them averages out
  // as the square root of their number.
  const auto beside = [&](std::int64_t count) {
    const Regression regression(draw_prompts({.count = count, .pairs = 20, .dimension = 3, .noise = 0, .seed = 1}));
    LinearTransformer model = begin;
    for (int n = 0; n < 20; ++n) descend(regression, model, 0.05);
    return factors_of(model).beside;
  };
  EXPECT_GT(beside(1), 1e-3);
  const double many = beside(100), very_many = beside(10000);
  EXPECT_GT(many / very_many, 3);
  EXPECT_LT(many / very_many, 30);
}

TEST(LinearTransformer, ComesBackFromAFile) {
  const store::Scratch scratch;
  for (const LinearTransformer& model :
       {matrices(3, 0.1), start({.dimension = 3, .value = 0.1, .key_query = 1.0 / 3})}) {
    LinearCheckpoint checkpoint;
    checkpoint.model = model;
    checkpoint.training = {{"step", 3}};
    checkpoint.history = {{"step", {1, 2, 3}}, {"loss", {0.5, 0.25, 0.125}}};
    store::OutputStream output(scratch / "m.h5");
    output.write(to_file(checkpoint), {});
    output.close();
    const store::FileReader file = store::open_one(scratch / "m.h5", store::kCheckpointFile);
    EXPECT_TRUE(is_linear_transformer(file));
    const LinearCheckpoint back = read_linear_checkpoint(file);
    EXPECT_EQ(back.model.dimension, 3);
    EXPECT_EQ(back.model.matrices, model.matrices);
    EXPECT_EQ(back.model.value, model.value);
    EXPECT_EQ(back.model.key_query, model.key_query);
    EXPECT_EQ(back.training, checkpoint.training);
    EXPECT_EQ(back.history, checkpoint.history);
  }
}

TEST(LinearTransformer, IsNotReadFromAFileThatDoesNotFit) {
  const store::Scratch scratch;
  store::FileWriter file(store::kCheckpointFile);
  file.text("/configuration", R"({"family": "linear-transformer", "dimension": 2, "matrices": true})");
  file.array("/parameters/W_V", std::vector<double>{1, 2});
  store::OutputStream output(scratch / "m.h5");
  output.write(std::move(file), {});
  output.close();
  try {
    read_linear_checkpoint(store::open_one(scratch / "m.h5", store::kCheckpointFile));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), scratch / "m.h5" + ": /parameters/W_V: expected shape [3], found [2]");
  }
}

} // namespace
} // namespace noether::regression
