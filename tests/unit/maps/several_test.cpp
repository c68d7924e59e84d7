// Training on several prompts: descent on the loss as it is written down, against the maps that it comes to.
#include "maps/several.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace noether::maps {
namespace {

const std::vector<double> kTargets{0.4, -0.9, 1.3}, kInputs{1, 2, 0.5};

/// Gradient descent by finite differences, central ones of a polynomial of degree 4: exact to 1e-9 or so.
void descend(std::vector<double>& x, double lr, const std::function<double(const std::vector<double>&)>& loss) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = [&](double by) {
      std::vector<double> moved = x;
      moved[i] += by;
      return loss(moved);
    };
    const double h = 1e-3;
    slopes.push_back((8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h));
  }
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= lr * slopes[i];
}

double loss_at(const std::vector<double>& factors) { // u, and one w or one for each
  double sum = 0;
  for (std::size_t i = 0; i < kTargets.size(); ++i)
    sum += std::pow(factors[0] * factors[factors.size() > 2 ? i + 1 : 1] * kInputs[i] - kTargets[i], 2) / 6;
  return sum;
}

Prompts prompts_at(double lr) {
  Prompts prompts{{}, kInputs};
  for (std::size_t i = 0; i < kTargets.size(); ++i) prompts.mus.push_back(lr * kInputs[i] * kTargets[i]);
  return prompts;
}

TEST(Several, OnePairOfFactorsIsTheTwoFactorMap) {
  const double lr = 0.35;
  const Prompts prompts = prompts_at(lr);
  const Shared all = shared(prompts);
  std::vector<double> factors{0.8, 0.6};
  const double unit = std::sqrt(lr * all.kappa);
  Point p{unit * 0.8, unit * 0.6};
  for (int n = 0; n < 40; ++n) {
    const std::vector<double> off = errors(prompts, all, p);
    for (std::size_t i = 0; i < off.size(); ++i)
      EXPECT_NEAR(off[i], lr * (factors[0] * factors[1] * kInputs[i] - kTargets[i]), 1e-8);
    EXPECT_NEAR(loss_of(off), lr * lr * loss_at(factors), 1e-8);
    EXPECT_NEAR(loss_of(off), std::pow(error_of(all.mu, p), 2) / (2 * all.kappa) + all.floor, 1e-12);
    descend(factors, lr, loss_at);
    step(p.a, p.b, all.mu);
  }
  EXPECT_GT(all.floor, 0.01);
  EXPECT_EQ(shared({{0.5, 0.5}, {1, 1}}).floor, 0); // prompts that agree leave nothing
}

TEST(Several, ASecondFactorForEach) {
  const double lr = 0.5, unit = std::sqrt(lr / 3);
  const Prompts prompts = prompts_at(lr);
  std::vector<double> factors{0.8, 0.6, -0.2, 0.3};
  Separate state{unit * 0.8, {unit * 0.6, unit * -0.2, unit * 0.3}};
  for (int n = 0; n < 40; ++n) {
    EXPECT_NEAR(loss_of(errors(prompts, state)), lr * lr * loss_at(factors), 1e-8);
    EXPECT_NEAR(state.a, unit * factors[0], 1e-8);
    descend(factors, lr, loss_at);
    step(prompts, state);
  }
  for (int n = 0; n < 500; ++n) step(prompts, state);
  EXPECT_LT(loss_of(errors(prompts, state)), 1e-20); // no floor
}

TEST(Several, SeparateFactorsHaveOneDirectionBesideTheTwoFactorMap) {
  const Prompts prompts{{0.9, -2.1, 1.3}, {1, 1, 1}};
  Separate state{0.7, {0.3, 0.2, 0.5}};
  const Parts begin = parts_of(prompts, state);
  double a = state.a, along = begin.along, beside = begin.beside;
  EXPECT_NEAR(begin.length, std::sqrt(0.81 + 4.41 + 1.69) / 3, 1e-14);
  for (int n = 0; n < 60; ++n) {
    const Parts parts = parts_of(prompts, state);
    EXPECT_NEAR(state.a, a, 1e-10);
    EXPECT_NEAR(parts.along, along, 1e-10);
    EXPECT_NEAR(parts.beside, std::abs(beside), 1e-10); // a length
    const double e = a * along - begin.length, next = a - e * along - a * beside * beside;
    along -= e * a;
    beside *= 1 - a * a;
    a = next;
    step(prompts, state);
  }
  // Without a part beside it is the two-factor map itself, in chaos too.
  const Prompts two{{3, 4}, {1, 1}}; // M = 5 / 2
  Separate line{0.5, {0.6 * 0.4, 0.8 * 0.4}};
  Point p{0.5, 0.4};
  for (int n = 0; n < 3; ++n) {
    EXPECT_NEAR(line.a, p.a, 1e-12);
    EXPECT_NEAR(parts_of(two, line).along, p.b, 1e-12);
    EXPECT_NEAR(parts_of(two, line).beside, 0, 1e-12);
    step(two, line);
    step(p.a, p.b, 2.5);
  }
}

} // namespace
} // namespace noether::maps
