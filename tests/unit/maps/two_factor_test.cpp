// Every identity of the map, on random points; thresholds, exponents and doublings against closed forms.
#include "base/error.h"
#include "base/random.h"
#include "maps/lyapunov.h"
#include "maps/phases.h"
#include "maps/two_factor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace noether::maps {
namespace {

/// Uniform in (low, high), of a fixed stream.
class Draws {
public:
  double operator()(double low, double high) { return low + (high - low) * random_.uniform(next_++); }

private:
  Random random_{1, Purpose::kOrbit};
  std::uint64_t next_ = 0;
};

TEST(TwoFactor, IsGradientDescentOnTheTwoFactorLoss) {
  Draws draw;
  for (int i = 0; i < 1000; ++i) {
    const double lr = draw(0.01, 2), s = draw(0.2, 2), y = draw(0.1, 2), u = draw(-2, 2), v = draw(-2, 2);
    // d/du and d/dv of 1/2 (u v s - y)^2
    const double r = u * v * s - y, next_u = u - lr * r * v * s, next_v = v - lr * r * u * s;
    const double c = std::sqrt(lr) * s; // a = c u, b = c v, mu = lr s y
    double a = c * u, b = c * v;
    step(a, b, lr * s * y);
    EXPECT_NEAR(a, c * next_u, 1e-12 * (1 + std::abs(a)));
    EXPECT_NEAR(b, c * next_v, 1e-12 * (1 + std::abs(b)));
  }
}

TEST(TwoFactor, ErrorAndImbalanceFollowTheirOwnMap) {
  Draws draw;
  for (int i = 0; i < 1000; ++i) {
    const double mu = draw(-1, 3);
    Point p{draw(-3, 3), draw(-3, 3)};
    const auto [e, w] = step_error(mu, error_of(mu, p), imbalance_of(p));
    step(p.a, p.b, mu);
    EXPECT_NEAR(error_of(mu, p), e, 1e-11 * (1 + std::abs(e)));
    EXPECT_NEAR(imbalance_of(p), w, 1e-11 * (1 + std::abs(w)));
  }
}

TEST(TwoFactor, IsSymmetric) {
  Draws draw;
  for (int i = 0; i < 100; ++i) {
    const double mu = draw(0, 2);
    const Point p{draw(-2, 2), draw(-2, 2)};
    Point one = p, swapped{p.b, p.a}, turned{-p.a, -p.b};
    for (int k = 0; k < 20; ++k)
      for (Point* q : {&one, &swapped, &turned}) step(q->a, q->b, mu);
    // To the bit, while finite: the arithmetic is the same.
    if (escaped(one)) continue;
    EXPECT_EQ(swapped.a, one.b);
    EXPECT_EQ(swapped.b, one.a);
    EXPECT_EQ(turned.a, -one.a);
  }
}

TEST(Cubic, SlopeAndFixedPoints) {
  Draws draw;
  for (int i = 0; i < 200; ++i) {
    const double mu = draw(-1, 3), e = draw(-2, 2), h = 1e-6;
    EXPECT_NEAR(cubic_slope(mu, e), (cubic(mu, e + h) - cubic(mu, e - h)) / (2 * h), 1e-8);
    EXPECT_NEAR(cubic_slope(mu, critical_point(mu)), 0, 1e-13);
    EXPECT_NEAR(cubic_slope(mu, 1), 0, 1e-13); // the other one, which falls on -mu
    EXPECT_NEAR(cubic(mu, 1), -mu, 1e-13);
    EXPECT_NEAR(cubic_slope(mu, -mu), (mu + 1) * (mu + 1), 1e-12);
    EXPECT_NEAR(cubic(mu, 2), 2, 1e-12); // the ends of the interval
    EXPECT_NEAR(cubic(mu, -mu), -mu, 1e-12 * (1 + std::abs(mu * mu * mu)));
  }
}

TEST(Ellipse, DistanceIsMultipliedByAPositiveFactor) {
  Draws draw;
  for (int i = 0; i < 1000; ++i) {
    const double mu = draw(0.01, 1.99);
    Point p{draw(-3, 3), draw(-3, 3)};
    const double e = error_of(mu, p), before = ellipse(mu, p), factor = 1 + mu * e + e * e;
    EXPECT_GT(factor, 0);
    // D in the words of the ellipse: the same sign, the same zero.
    const double form = (p.a + p.b) * (p.a + p.b) / (2 + mu) + (p.a - p.b) * (p.a - p.b) / (2 - mu) - 4;
    EXPECT_NEAR(before, form * (2 - mu) * (2 + mu) / 4, 1e-12 * (1 + std::abs(before)));
    step(p.a, p.b, mu);
    EXPECT_NEAR(ellipse(mu, p), factor * before, 1e-10 * (1 + std::abs(factor * before)));
  }
}

TEST(Ellipse, IsInvariantAndTriplesTheAngle) {
  Draws draw;
  for (int i = 0; i < 200; ++i) {
    const double mu = draw(0.05, 1.95), theta = draw(0, std::numbers::pi), e = 2 * std::cos(theta);
    // The point of the ellipse with this error: w^2 = (2 - mu)(2 - e), (a + b)^2 = 4 (e + mu) + w^2.
    const double w = std::sqrt((2 - mu) * (2 - e)), sum = std::sqrt(4 * (e + mu) + w * w);
    Point p{(sum + w) / 2, (sum - w) / 2};
    EXPECT_NEAR(ellipse(mu, p), 0, 1e-12);
    step(p.a, p.b, mu);
    EXPECT_NEAR(ellipse(mu, p), 0, 1e-11);
    EXPECT_NEAR(error_of(mu, p), 2 * std::cos(3 * theta), 1e-11);
  }
}

TEST(Ellipse, RepelsAsTheNoteSays) {
  // 2 ln |z| at mu -> 0 and mu = 1, to the digits of the note.
  EXPECT_NEAR(ellipse_repulsion(1e-9), 0.9624, 5e-5);
  EXPECT_NEAR(ellipse_repulsion(1), 0.8626, 5e-5);
  // The mean of ln |1 + mu e + e^2| over e = 2 cos(theta), theta uniform: what the exponent is.
  for (const double mu : {0.3, 1.0, 1.7}) {
    double sum = 0;
    constexpr int n = 200000; // a smooth periodic integrand: the sum is exact to rounding
    for (int i = 0; i < n; ++i) {
      const double e = 2 * std::cos(std::numbers::pi * (i + 0.5) / n);
      sum += std::log(1 + mu * e + e * e);
    }
    EXPECT_NEAR(sum / n, ellipse_repulsion(mu), 1e-10);
  }
}

// At mu = 2 the balanced map is e^3 - 3e, which is angle tripling in disguise: its exponent is ln 3, exactly.
TEST(Lyapunov, IsLn3WhereTheMapIsChebyshev) {
  const Lyapunov found = lyapunov(2, {});
  EXPECT_NEAR(found.along.value, std::log(3.0), 4 * found.along.standard_error);
  EXPECT_LT(found.along.standard_error, 5e-3); // or the line above could not fail
  EXPECT_EQ(found.escaped, 0);
}

TEST(Lyapunov, OnTheEllipseIsLn3AlongAndItsRepulsionAcross) {
  for (const double mu : {0.2, 1.0, 1.8}) {
    const Lyapunov found = lyapunov(mu, {.locus = Locus::ellipse});
    EXPECT_NEAR(found.along.value, std::log(3.0), 4 * found.along.standard_error);
    EXPECT_NEAR(found.across.value, ellipse_repulsion(mu), 4 * found.across.standard_error);
    EXPECT_LT(found.across.standard_error, 5e-3);
  }
}

// On a stable fixed point e = 0 the exponents are ln |1 - 2 mu| and ln 1; mu = 1/2 is superstable.
TEST(Lyapunov, OfFixedPoints) {
  const Lyapunov found = lyapunov(0.7, {.transient = 2000, .steps = 100});
  EXPECT_NEAR(found.along.value, std::log(0.4), 1e-9);
  EXPECT_NEAR(found.across.value, 0, 1e-9);
  const Lyapunov superstable = lyapunov(0.5, {.transient = 2000, .steps = 100});
  EXPECT_TRUE(std::isinf(superstable.along.value) && superstable.along.value < 0);
  EXPECT_EQ(superstable.superstable, superstable.blocks);
  EXPECT_EQ(lyapunov(2.5, {}).escaped, 32);
}

TEST(Lyapunov, IsTheSameOnAnyNumberOfThreads) {
  const Lyapunov one = lyapunov(1.8, {.threads = 1}), three = lyapunov(1.8, {.threads = 3});
  EXPECT_EQ(one.along.value, three.along.value);
  EXPECT_EQ(one.across.standard_error, three.across.standard_error);
}

TEST(Phases, AreThoseOfTheTable) {
  const auto phase = [](double mu) { return classify(mu, {}); };
  EXPECT_EQ(phase(0.3).phase, Phase::monotone);
  EXPECT_EQ(phase(0.82).phase, Phase::monotone);
  EXPECT_EQ(phase(0.84).phase, Phase::catapult);
  EXPECT_EQ(phase(0.99).phase, Phase::catapult);
  EXPECT_EQ(phase(1.1).phase, Phase::periodic);
  EXPECT_EQ(phase(1.1).period, 2);
  EXPECT_EQ(phase(1.24).period, 4);
  EXPECT_EQ(phase(1.9).phase, Phase::chaotic);
  EXPECT_EQ(phase(2).phase, Phase::chaotic);
  EXPECT_EQ(phase(0.5).exponent, -std::numeric_limits<double>::infinity()); // superstable
  EXPECT_EQ(phase(2.01).phase, Phase::divergent);
  EXPECT_THROW(phase(0), Error);
}

TEST(Phases, ThresholdsAreTheClosedForms) {
  const auto found = thresholds(3);
  ASSERT_EQ(found.size(), 5U);
  for (const Threshold& threshold : found)
    if (!std::isnan(threshold.closed_form)) {
      EXPECT_NEAR(threshold.mu, threshold.closed_form, 1e-9) << threshold.from;
    }
  EXPECT_NEAR(found.back().mu, 2, 1e-9);
}

// Feigenbaum's constant, 4.669201609..., from the distances between doublings: to three digits by the seventh.
TEST(Phases, DoublingsApproachFeigenbaumsRatio) {
  const auto mu = period_doublings(8);
  ASSERT_EQ(mu.size(), 8U);
  for (std::size_t k = 1; k < mu.size(); ++k) EXPECT_GT(mu[k], mu[k - 1]);
  EXPECT_NEAR((mu[6] - mu[5]) / (mu[7] - mu[6]), 4.669, 2e-3);
}

} // namespace
} // namespace noether::maps
