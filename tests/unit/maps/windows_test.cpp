// Periodic windows against closed forms, and against how many there are.
#include "maps/phases.h"
#include "maps/windows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace noether::maps {
namespace {

std::vector<Window> windows_of(const std::string& text, WindowOptions options) {
  return windows(parse_family("--map", text), options);
}

// Cycles of x^2 + mu that a superstable orbit of period p begins, on the real line: 1, 1, 1, 2, 3, 5, 9, 16 for p = 1
// to 8 (Metropolis, Stein and Stein, J. Combinatorial Theory A 15 (1973), 25). Of these 1, 1 and 2 of periods 4, 6 and
// 8 come of doublings: of that of period 2, of period 3, and of periods 4 (two).
TEST(Windows, OfTheQuadraticMapAreAsManyAsThereAre) {
  const std::vector<Window> found =
      windows_of("x^2 + mu", {.low = -2, .high = 0.25, .count = 20000, .longest = 8, .threads = 3});
  std::map<std::int64_t, int> count;
  for (const Window& window : found) {
    ++count[window.period];
    EXPECT_GT(window.opens, window.superstable); // opening from above
    EXPECT_GT(window.superstable, window.doubles);
    ASSERT_TRUE(window.accumulates && window.closes) << window.opens;
    EXPECT_GT(window.doubles, *window.accumulates);
    EXPECT_GT(*window.accumulates, *window.closes);
    EXPECT_LT(*window.accumulates_error, 1e-3 * (window.opens - *window.closes));
    // Inside there is the cycle, beyond its edges there is not.
    const auto period = [](double mu) { return settle(Polynomial({mu, 0, 1}), 1e-6, {}).period; };
    EXPECT_EQ(period(window.superstable), window.period);
    const double width = window.opens - window.doubles;
    EXPECT_EQ(period(window.opens - 1e-2 * width), window.period);
    EXPECT_EQ(period(window.doubles + 1e-2 * width), window.period);
    EXPECT_NE(period(window.opens + 1e-2 * width), window.period);
    EXPECT_NE(period(window.doubles - 1e-2 * width), window.period);
  }
  EXPECT_EQ(count, (std::map<std::int64_t, int>{{3, 1}, {4, 1}, {5, 3}, {6, 4}, {7, 9}, {8, 14}}));
}

// The window of period 3 of the logistic map: 1 + sqrt 8 to 3.8568007 (its crisis), doubling at 3.8414990075 and to the
// end at 3.8495. In x^2 + c it opens at -7/4, doubles where c^3 + 2 c^2 + 2 c ... and closes at -1.790327.
TEST(Windows, OfPeriod3) {
  const std::vector<Window> found = windows_of("mu x (1 - x)", {.low = 3.5, .high = 4, .count = 1000, .longest = 3});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].opens, 1 + std::sqrt(8.0), 1e-11);
  EXPECT_NEAR(found[0].doubles, 3.8414990075435, 1e-10);
  EXPECT_NEAR(found[0].superstable, 3.8318740552833, 1e-10);
  EXPECT_NEAR(*found[0].accumulates, 3.8495, 1e-4);
  EXPECT_NEAR(*found[0].closes, 3.8568007, 1e-6);
  const std::vector<Window> square = windows_of("x^2 + mu", {.low = -2, .high = -1.5, .count = 1000, .longest = 3});
  ASSERT_EQ(square.size(), 1U);
  EXPECT_NEAR(square[0].opens, -1.75, 1e-12);
  // r (2 - r) / 4 = c takes one into the other.
  EXPECT_NEAR(square[0].doubles, found[0].doubles * (2 - found[0].doubles) / 4, 1e-11);
  EXPECT_NEAR(*square[0].closes, *found[0].closes * (2 - *found[0].closes) / 4, 1e-11);
  EXPECT_NEAR(*square[0].accumulates, *found[0].accumulates * (2 - *found[0].accumulates) / 4, 1e-8);
}

// At its crisis the critical point falls on the cycle that repels: the orbit has the multiplier of that cycle for good.
TEST(Windows, CloseWhereTheCriticalPointFallsOnTheCycleThatRepels) {
  for (const Window& window : windows(balanced_line(), {.low = 1.3, .high = 2, .count = 4000, .longest = 5})) {
    ASSERT_TRUE(window.closes);
    const Polynomial map = balanced_line().at(*window.closes);
    double x = real_roots(map.slopes)[0];
    for (std::int64_t n = 0; n < 2 * window.period; ++n) x = map(x);
    double y = x;
    for (std::int64_t n = 0; n < window.period; ++n) y = map(y);
    EXPECT_NEAR(x, y, 1e-6) << window.period << " " << window.opens;
  }
}

TEST(Windows, OfTheBalancedLine) {
  // Found before as intervals of one period in steps of 1e-4.
  const std::vector<Window> found = windows(balanced_line(), {.low = 1.24, .high = 2, .count = 8000, .longest = 3});
  const auto near = [&](std::int64_t period, double opens, double doubles) {
    return std::any_of(found.begin(), found.end(), [&](const Window& window) {
      return window.period == period && std::abs(window.opens - opens) < 2e-4 &&
             std::abs(window.doubles - doubles) < 2e-4;
    });
  };
  EXPECT_TRUE(near(3, 1.4505, 1.4607));
  EXPECT_TRUE(near(2, 1.8285, 1.8376));
  EXPECT_TRUE(near(3, 1.6997, 1.7023));
}

TEST(Windows, DoublingsOfOtherMaps) {
  const std::vector<Doubling> found = doublings(parse_family("--map", "mu x (1 - x)"), 2.5, 4, 8);
  ASSERT_EQ(found.size(), 8U);
  EXPECT_NEAR(found[0].mu, 3, 1e-12);
  EXPECT_NEAR(found[1].mu, 1 + std::sqrt(6.0), 1e-12);
  EXPECT_EQ(found[7].period, 128);
  EXPECT_NEAR((found[6].mu - found[5].mu) / (found[7].mu - found[6].mu), 4.6692, 1e-3);
  const std::vector<double> own = period_doublings(6);
  const std::vector<Doubling> cubic = doublings(balanced_line(), 0.7, 2, 6);
  ASSERT_EQ(cubic.size(), 6U);
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(cubic[i].mu, own[i], 1e-11);
}

} // namespace
} // namespace noether::maps
