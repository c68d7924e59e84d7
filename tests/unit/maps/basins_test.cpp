// Grids against a plain loop of one point at a time, and against what is proved.
#include "maps/basins.h"

#include "maps/two_factor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace noether::maps {
namespace {

BasinOptions small(double mu) {
  BasinOptions options;
  options.mu = mu;
  options.x.count = 61;
  options.y.count = 47;
  options.steps = 500;
  return options;
}

Basins run(const BasinOptions& options) {
  Reporter reporter("test", Verbosity::quiet);
  return basins(options, reporter);
}

TEST(Basins, AreThoseOfAPlainLoop) {
  for (const double mu : {0.3, 0.8, 1.1, 1.7}) {
    const BasinOptions options = small(mu);
    const Basins found = run(options);
    for (std::int64_t i = 0; i < options.x.count * options.y.count; ++i) {
      Point p{options.x.at(i % options.x.count), options.y.at(i / options.x.count)};
      std::int64_t n = 0;
      bool gone = false, there = false;
      for (;; ++n) {
        gone = escaped(p);
        there = std::abs(error_of(mu, p)) <= options.tolerance && p.a * p.a + p.b * p.b < 2;
        if (gone || there || n == options.steps) break;
        step(p.a, p.b, mu);
      }
      const auto at = static_cast<std::size_t>(i);
      if (gone || there) {
        EXPECT_EQ(found.fate[at], gone ? Fate::diverged : Fate::converged);
      } else {
        EXPECT_TRUE(found.fate[at] == Fate::periodic || found.fate[at] == Fate::undecided);
      }
      ASSERT_EQ(found.steps[at], n) << mu << " " << i;
    }
  }
}

TEST(Basins, DoNotDependOnTheThreadsAndAreSymmetric) {
  BasinOptions options = small(0.9);
  options.x.count = options.y.count = 200;
  const Basins one = run(options);
  options.threads = 3;
  const Basins three = run(options);
  EXPECT_EQ(one.steps, three.steps);
  EXPECT_EQ(one.fate, three.fate);
  EXPECT_EQ(one.period, three.period);
  for (std::int64_t y = 0; y < 200; ++y)
    for (std::int64_t x = 0; x < 200; ++x) {
      const auto at = [](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(j * 200 + i); };
      ASSERT_EQ(one.steps[at(x, y)], one.steps[at(y, x)]);           // (a, b) -> (b, a)
      ASSERT_EQ(one.fate[at(x, y)], one.fate[at(199 - x, 199 - y)]); // (a, b) -> (-a, -b)
    }
}

// Inside the ellipse almost everything converges for mu < 1, outside almost everything diverges: its area is
// 2 pi sqrt(4 - mu^2) (half axes 2 sqrt((2 + mu) / 2) and 2 sqrt((2 - mu) / 2)).
TEST(Basins, TheEllipsePartsThem) {
  BasinOptions options = small(0.8);
  options.x.count = options.y.count = 500;
  options.steps = 2000;
  const Basins found = run(options);
  std::int64_t strays = 0;
  for (std::int64_t i = 0; i < 250000; ++i) {
    const double distance = ellipse(0.8, {options.x.at(i % 500), options.y.at(i / 500)});
    const Fate fate = found.fate[static_cast<std::size_t>(i)];
    EXPECT_FALSE(distance < 0 && fate == Fate::diverged);
    strays += (distance < 0) != (fate == Fate::converged) ? 1 : 0;
  }
  EXPECT_LT(strays, 250);                                             // slow ones near the boundary
  for (const Fate fate : found.fate) EXPECT_NE(fate, Fate::periodic); // there is no cycle at this mu
  const auto list = areas(found, options);
  const Area& converged = list[static_cast<std::size_t>(Fate::converged)];
  EXPECT_NEAR(converged.area, 2 * std::numbers::pi * std::sqrt(4 - 0.64), converged.error);
  EXPECT_LT(converged.error, 0.02 * converged.area);
  double sum = 0;
  for (const Area& area : list) sum += area.fraction;
  EXPECT_DOUBLE_EQ(sum, 1);
}

TEST(Basins, FindPeriods) {
  BasinOptions options = small(1.1);
  options.x = {0.2, 1.8, 31};
  options.y = {0.2, 1.8, 31};
  options.steps = 5000;
  const Basins found = run(options);
  std::int64_t twos = 0;
  for (std::size_t i = 0; i < found.fate.size(); ++i)
    twos += found.fate[i] == Fate::periodic && found.period[i] == 2 ? 1 : 0;
  EXPECT_GT(twos, 700); // of 961
}

TEST(Basins, OfAStackAreThoseOfEachMu) {
  BasinOptions options = small(0.8);
  options.stack = {0.4, 1.1, 1.9};
  options.threads = 3;
  const Basins all = run(options);
  const auto cells = static_cast<std::size_t>(options.x.count * options.y.count);
  ASSERT_EQ(all.fate.size(), 3 * cells);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const BasinOptions single = small(options.stack[layer]);
    const Basins one = run(single);
    const auto part = [&](const auto& values) {
      return std::vector(values.begin() + static_cast<std::ptrdiff_t>(layer * cells),
                         values.begin() + static_cast<std::ptrdiff_t>((layer + 1) * cells));
    };
    EXPECT_EQ(part(all.fate), one.fate);
    EXPECT_EQ(part(all.steps), one.steps);
    EXPECT_EQ(part(all.period), one.period);
    const std::vector<Area> a = areas(all, options, static_cast<std::int64_t>(layer)), b = areas(one, single);
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].cells, b[i].cells);
      EXPECT_EQ(a[i].error, b[i].error);
    }
  }
}

// A minimum with imbalance w is stable below mu = 1 - w^2 / 2.
TEST(Basins, OverMuShowWhereMinimaLoseStability) {
  BasinOptions options;
  options.over_mu = true;
  options.x = {0.02, 1.2, 40};
  options.y = {-1.2, 1.2, 40};
  options.steps = 20000;
  options.offset = 1e-6;
  const Basins found = run(options);
  for (std::int64_t i = 0; i < 1600; ++i) {
    const double mu = options.x.at(i % 40), w = options.y.at(i / 40), margin = 1 - w * w / 2 - mu;
    if (margin > 0.03) {
      EXPECT_EQ(found.fate[static_cast<std::size_t>(i)], Fate::converged) << mu << " " << w;
      EXPECT_LT(found.steps[static_cast<std::size_t>(i)], 400U); // at once, not after a detour
    }
  }
}

} // namespace
} // namespace noether::maps
