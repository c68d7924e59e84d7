#include "maps/diagram.h"

#include "maps/two_factor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace noether::maps {
namespace {

TEST(Diagram, IsThatOfOneOrbitAtATime) {
  DiagramOptions options;
  for (int i = 0; i < 37; ++i) options.mu.push_back(0.5 + i * 0.05); // some diverge
  options.starts = {0.3};
  options.transient = 50;
  options.keep = 20;
  options.threads = 3;
  const Diagram found = diagram(options);
  for (std::size_t i = 0; i < options.mu.size(); ++i) {
    double e = 0.3;
    std::int64_t gone = 0;
    for (std::int64_t n = 1; n <= 70; ++n) {
      e = cubic(options.mu[i], e);
      if (gone == 0 && !(std::abs(e) <= kEscape)) gone = n;
      if (n <= 50) continue;
      const double kept = found.e[i * 20 + static_cast<std::size_t>(n - 51)];
      EXPECT_TRUE(std::isnan(kept) || gone == 0 || gone > n);
      EXPECT_TRUE(gone > 0 || kept == e || std::abs(e) > 3) << options.mu[i];
    }
    EXPECT_EQ(found.escaped[i] > 0, gone > 0); // and no later: the radius is beyond what can stay
    EXPECT_LE(found.escaped[i], gone);
    EXPECT_EQ(found.branch[i], gone > 0 ? 0 : 1);
  }
  EXPECT_GT(found.escaped.back(), 0);
  EXPECT_EQ(found.escaped.front(), 0);
}

// Between 1 and sqrt(5) - 1 the attractor is a cycle of period 2.
TEST(Diagram, FollowsABranch) {
  DiagramOptions options;
  options.mu = {1.05, 1.1, 1.15, 1.2};
  options.transient = 2000;
  options.keep = 4;
  options.follow = true;
  const Diagram found = diagram(options);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(found.e[4 * i], found.e[4 * i + 2], 1e-12);
    EXPECT_GT(std::abs(found.e[4 * i] - found.e[4 * i + 1]), 0.1);
  }
}

// x^3 - mu x is odd. For 1 < mu < 2 its only attractor is the cycle of period 2 at +- sqrt(mu - 1), which is its own
// mirror image; for 2 < mu < sqrt(5) there are two such cycles, of x y = -+ 1 and (x + y)^2 = mu - 2, that mirror one
// another.
TEST(Diagram, FindsAttractorsThatCoexist) {
  DiagramOptions options;
  options.map = parse_family("--map", "x^3 - mu x");
  options.mu = {1.5, 2.2};
  options.keep = 6;
  const Diagram found = diagram(options);
  ASSERT_EQ(found.orbits, 2); // two critical points each
  EXPECT_EQ(found.branch, (std::vector<std::int64_t>{1, 1, 1, 2}));
  EXPECT_NEAR(std::abs(found.e[0]), std::sqrt(0.5), 1e-12);
  const double x = found.e[12], y = found.e[13], other = found.e[18];
  EXPECT_NEAR(std::abs(x * y), 1, 1e-12);
  EXPECT_NEAR(std::abs(x + y), std::sqrt(0.2), 1e-12);
  EXPECT_TRUE(std::abs(other + x) < 1e-12 || std::abs(other + y) < 1e-12);
  // Chaos from two starts is one attractor, and starts may be given.
  options.map = parse_family("--map", "mu x (1 - x)");
  options.mu = {3.9};
  options.starts = {0.1, 0.7, 2};
  options.keep = 200;
  EXPECT_EQ(diagram(options).branch, (std::vector<std::int64_t>{1, 1, 0}));
}

} // namespace
} // namespace noether::maps
