#include "maps/diagram.h"

#include "maps/two_factor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace noether::maps {
namespace {

TEST(Diagram, IsThatOfOneOrbitAtATime) {
  DiagramOptions options;
  for (int i = 0; i < 37; ++i) options.mu.push_back(0.5 + i * 0.05); // some diverge
  options.start = 0.3;
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
      EXPECT_EQ(std::isnan(kept), gone > 0);
      EXPECT_TRUE(gone > 0 || kept == e) << options.mu[i];
    }
    EXPECT_EQ(found.escaped[i], gone);
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

} // namespace
} // namespace noether::maps
