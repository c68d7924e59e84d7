#include "maps/switching.h"

#include "maps/lyapunov.h"
#include "maps/two_factor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace noether::maps {
namespace {

TEST(Switching, WithoutNoiseIsTheMap) {
  SwitchingOptions options;
  options.nu_deviation = 0;
  options.orbits = 3;
  EXPECT_EQ(switching(options).escaped, 0); // inside the ellipse
  options.a = options.b = 3;
  const Switching out = switching(options);
  EXPECT_EQ(out.escaped, 3);
  Point p{3, 3};
  std::int64_t n = 0;
  for (; !escaped(p); ++n) step(p.a, p.b, options.mu);
  EXPECT_EQ(out.mean_first_escape, static_cast<double>(n));
  EXPECT_EQ(out.first_escape[static_cast<std::size_t>(n)], 3);
}

// The exponent across of the deterministic balanced orbit: on the fixed point e = 0 it is 0, in chaos that of
// lyapunov().
TEST(Switching, ExponentAcrossIsThatOfTheBalancedLine) {
  SwitchingOptions options;
  options.nu_deviation = 0;
  options.orbits = 1;
  options.steps = 100000;
  options.mu = 1.9;
  const Lyapunov expected = lyapunov(1.9, {.blocks = 64, .steps = 20000});
  // One orbit of 90 000 steps against 64 of 20 000: the one's own error is some 4 times theirs.
  EXPECT_NEAR(switching(options).across, expected.across.value, 20 * expected.across.standard_error);
}

// At mu = 1/2 and noise xi of deviation s: with ab = mu + d and e = d - xi a step gives d' = xi - 2 e d + e^2 / 2 to
// second order, so e is xi_before - xi, of variance 2 s^2, and its mean -2 s^2 + s^2; hence E ln(1 + e) = -s^2 - s^2.
TEST(Switching, SmallNoiseMakesImbalanceShrink) {
  SwitchingOptions options;
  options.mu = 0.5;
  options.nu_deviation = 0.01;
  options.orbits = 400;
  options.a = options.b = std::sqrt(0.5);
  const Switching found = switching(options);
  EXPECT_EQ(found.escaped, 0);
  EXPECT_NEAR(found.across / 1e-4, -2, 4 * found.across_stderr / 1e-4 + 0.02); // the next order is s^3 or less
  EXPECT_LT(found.across_stderr, 0.02e-4);
}

TEST(Switching, TwoPointBatchesHaveTheirVariance) {
  // Far below escape, the spread of nu alone decides e: the variance of a batch of B is 1 / B, seen in the exponent.
  SwitchingOptions options;
  options.draw = Draw::two_point;
  options.mu = 0.5;
  options.a = options.b = std::sqrt(0.5);
  options.nu_deviation = 0.02;
  options.orbits = 400;
  const double one = switching(options).across;
  options.batch = 100;
  const double hundred = switching(options).across;
  EXPECT_NEAR(one / hundred, 100, 30);
}

TEST(Switching, IsTheSameOnAnyNumberOfThreadsAndLargerBatchesEscapeLess) {
  SwitchingOptions options;
  options.nu_deviation = 0.8;
  options.orbits = 500;
  options.steps = 200;
  const Switching one = switching(options);
  options.threads = 3;
  const Switching three = switching(options);
  EXPECT_EQ(one.first_escape, three.first_escape);
  EXPECT_EQ(one.balanced_escaped, three.balanced_escaped);
  EXPECT_EQ(std::accumulate(one.first_escape.begin(), one.first_escape.end(), std::int64_t{0}), one.escaped);
  EXPECT_GT(one.escaped, 50);
  options.batch = 64;
  EXPECT_LT(switching(options).escaped, one.escaped / 5);
}

// Wilson's interval, from its definition: p at its ends is z standard errors (of that p) away from the estimate.
// At a = b = 0 nothing moves, and each step multiplies the imbalance by 1 - nu: by 1 or 0 at even odds here. Of the
// nine steps that count one orbit in 512 sees no 0; of the others the exponent is -infinity.
TEST(Switching, LeavesSuperstableOrbitsOutOfTheMeanAndCountsThem) {
  SwitchingOptions options{
      .mu = 0.5, .nu_deviation = 0.5, .draw = Draw::two_point, .a = 0, .b = 0, .orbits = 20000, .steps = 10};
  const Switching found = switching(options);
  const auto kept = static_cast<double>(options.orbits - found.superstable);
  EXPECT_NEAR(kept, 20000 / 512.0, 4 * std::sqrt(20000 / 512.0));
  EXPECT_EQ(found.across, 0);
  EXPECT_EQ(found.across_stderr, 0);
  options.orbits = 4;
  EXPECT_EQ(switching(options).across, -std::numeric_limits<double>::infinity());
}

TEST(ShareOf, IsWilsonsInterval) {
  for (const auto& [count, all] : {std::pair{0, 50}, std::pair{7, 50}, std::pair{500, 1000}, std::pair{50, 50}}) {
    const Share share = share_of(count, all);
    for (const double end : {share.low, share.high})
      if (end > 0 && end < 1) {
        EXPECT_NEAR(std::abs(share.value - end), 1.959963984540054 * std::sqrt(end * (1 - end) / all), 1e-12);
      }
    EXPECT_LE(share.low, share.value);
    EXPECT_GE(share.high, share.value);
  }
}

} // namespace
} // namespace noether::maps
