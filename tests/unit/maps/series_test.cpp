// Series whose course is known: the map's own phases, and simple ones.
#include "maps/series.h"

#include "base/error.h"
#include "maps/two_factor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace noether::maps {
namespace {

/// The loss of the balanced map from e = 0.6.
std::vector<double> losses(double mu, int steps, double e = 0.6) {
  std::vector<double> out;
  for (int i = 0; i < steps; ++i, e = cubic(mu, e)) out.push_back(e * e / 2);
  return out;
}

Series classify(const std::vector<double>& values) { return classify_series(values, {}); }

TEST(ClassifySeries, KnowsThePhasesOfTheMap) {
  EXPECT_EQ(classify(losses(0.4, 300)).course, Course::monotone);
  const Series catapult = classify(losses(0.95, 3000));
  EXPECT_EQ(catapult.course, Course::catapult);
  EXPECT_GT(catapult.rises, 0);
  const Series two = classify(losses(1.15, 3000));
  EXPECT_EQ(two.course, Course::periodic);
  EXPECT_EQ(two.period, 2);
  EXPECT_EQ(classify(losses(1.25, 6000)).period, 4);
  const Series chaos = classify(losses(1.9, 3000));
  EXPECT_EQ(chaos.course, Course::chaotic);
  EXPECT_GT(chaos.chaos, 0.8);
  EXPECT_EQ(classify(losses(2.3, 300)).course, Course::divergent);
}

TEST(ClassifySeries, FollowsItsRules) {
  EXPECT_EQ(classify({9, 8, 7, 6, 5, 4, 3, 2, 1}).course, Course::monotone);
  EXPECT_EQ(classify({5, 5, 5, 5, 5, 5, 5, 5, 5}).course, Course::monotone);
  const Series up = classify({9, 12, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_EQ(up.course, Course::catapult);
  EXPECT_EQ(up.first_rise, 1);
  EXPECT_EQ(classify({1, 2, 4, 1e6, 2, 2, 2, 2}).course, Course::divergent);
  EXPECT_EQ(classify({1, 2, std::nan(""), 2, 2, 2, 2, 2}).course, Course::divergent);
  EXPECT_EQ(classify({1, 2, 3, 4, 5, 6, 7, 8, 9}).course, Course::undecided);
  EXPECT_THROW(classify({1, 2, 3}), Error);
}

// Two frequencies that do not fit into one period: not periodic, and not chaotic.
TEST(ClassifySeries, QuasiperiodicIsNotChaotic) {
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) values.push_back(3 + std::sin(i) + std::sin(std::sqrt(2.0) * i));
  const Series found = classify(values);
  EXPECT_EQ(found.course, Course::undecided);
  EXPECT_LT(found.chaos, 0.2);
}

} // namespace
} // namespace noether::maps
