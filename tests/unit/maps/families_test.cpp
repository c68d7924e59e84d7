// Phases and exponents of maps other than the two-factor one, against what is known of them.
#include "maps/lyapunov.h"
#include "maps/phases.h"
#include "maps/polynomial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace noether::maps {
namespace {

std::vector<Branch> branches_of(const std::string& text, double mu) {
  const Polynomial map = parse_family("--map", text).at(mu);
  return branches(map, critical_starts(map), {});
}

TEST(Families, LogisticPhases) {
  const auto period = [](double r) {
    const std::vector<Branch> found = branches_of("mu x (1 - x)", r);
    return found.size() == 1 && found[0].attractor.phase == Phase::periodic ? found[0].attractor.period : 0;
  };
  EXPECT_EQ(period(2.9), 1);
  EXPECT_EQ(period(3.1), 2);
  EXPECT_EQ(period(1 + std::sqrt(6.0) - 1e-3), 2);
  EXPECT_EQ(period(1 + std::sqrt(6.0) + 1e-3), 4);
  EXPECT_EQ(period(1 + std::sqrt(8.0) + 1e-4), 3); // the window of period 3 opens at 1 + sqrt 8
  EXPECT_EQ(branches_of("mu x (1 - x)", 3.9)[0].attractor.phase, Phase::chaotic);
  const Attractor gone = branches_of("mu x (1 - x)", 4.1)[0].attractor;
  EXPECT_EQ(gone.phase, Phase::divergent);
  EXPECT_GT(gone.escaped, 0);
  // x* = 1 - 1 / r, with multiplier 2 - r.
  const Attractor fixed = branches_of("mu x (1 - x)", 2.7)[0].attractor;
  EXPECT_NEAR(fixed.e, 1 - 1 / 2.7, 1e-9);
  EXPECT_NEAR(fixed.exponent, std::log(0.7), 1e-9);
  EXPECT_EQ(branches_of("mu x (1 - x)", 2)[0].attractor.exponent, -std::numeric_limits<double>::infinity());
}

TEST(Families, CoexistingAttractorsAreTold) {
  const std::vector<Branch> two = branches_of("x^3 - mu x", 2.1), one = branches_of("x^3 - mu x", 1.5);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].attractor.period, 2);
  EXPECT_EQ(two[0].starts, 1);
  EXPECT_NEAR(two[0].attractor.exponent, two[1].attractor.exponent, 1e-9);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].starts, 2);
  // Two chaotic attractors of two bands each, until the bands on one side meet: then they are one.
  EXPECT_EQ(branches_of("x^3 - mu x", 2.36).size(), 2U);
  EXPECT_EQ(branches_of("x^3 - mu x", 2.36)[0].attractor.phase, Phase::chaotic);
  EXPECT_EQ(branches_of("x^3 - mu x", 2.9).size(), 1U);
}

// T_n is conjugate to the tent map of slope n.
TEST(Families, ExponentOfChebyshevPolynomialsIsLnN) {
  const std::vector<std::string> texts{"2 x^2 - 1", "4 x^3 - 3 x", "8 x^4 - 8 x^2 + 1", "16 x^5 - 20 x^3 + 5 x"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Polynomial map = parse_family("--map", texts[i]).at(0);
    const std::vector<double> starts = critical_starts(map);
    const std::vector<Branch> found = branches(map, starts, {});
    ASSERT_EQ(found.size(), 1U) << texts[i];
    EXPECT_EQ(found[0].attractor.phase, Phase::chaotic);
    const Lyapunov exponent = lyapunov(map, 0.3, {});
    EXPECT_NEAR(exponent.along.value, std::log(static_cast<double>(i + 2)), 4 * exponent.along.standard_error);
    EXPECT_LT(exponent.along.standard_error, 5e-3);
    EXPECT_EQ(exponent.escaped, 0);
  }
  const Lyapunov logistic = lyapunov(parse_family("--map", "mu x (1 - x)").at(4), 0.3, {});
  EXPECT_NEAR(logistic.along.value, std::log(2.0), 4 * logistic.along.standard_error);
}

TEST(Families, TheBalancedLineHasTheTwoFactorMapsExponents) {
  const Polynomial map = balanced_line().at(1.9);
  const Lyapunov own = lyapunov(1.9, {}), general = lyapunov(map, critical_starts(map)[0], {});
  EXPECT_NEAR(own.along.value, general.along.value,
              4 * std::hypot(own.along.standard_error, general.along.standard_error));
  // Superstable orbits are counted, and left out of the mean.
  const Lyapunov superstable = lyapunov(balanced_line().at(0.5), 0, {});
  EXPECT_EQ(superstable.superstable, superstable.blocks);
}

} // namespace
} // namespace noether::maps
