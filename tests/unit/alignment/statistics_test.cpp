// Tails, rates and correlations against SciPy's numbers and what can be counted by hand.
#include "alignment/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace noether::alignment {
namespace {

// scipy.stats.hypergeom(all, members, drawn): sf(found - 1) and cdf(found); SciPy 1.16. Ours sum exponentials of log
// gammas near 5e5, which leaves ten digits.
TEST(Hypergeometric, AgreesWithSciPy) {
  struct Case {
    std::int64_t all, members, drawn, found;
    double at_least, at_most;
  };
  for (const Case& c : {Case{20, 7, 12, 5, 0.39164086687306504, 0.8944272445820434},
                        Case{50257, 612, 100, 9, 3.9504182153809844e-06, 0.9999995678983274},
                        Case{2047, 128, 100, 0, 1, 0.0013280843644622856}, Case{300, 299, 150, 149, 1, 0.5}}) {
    const Tails tails = hypergeometric_tails(c.all, c.members, c.drawn, c.found);
    EXPECT_NEAR(tails.at_least / c.at_least, 1, 1e-8) << c.all;
    EXPECT_NEAR(tails.at_most / c.at_most, 1, 1e-8) << c.all;
    EXPECT_LE(two_sided(tails), 1);
  }
  EXPECT_NEAR(two_sided({0.01, 0.999}), 0.02, 1e-15);
}

// scipy.stats.false_discovery_control.
TEST(FalseDiscovery, AgreesWithSciPy) {
  const std::vector<double> p{0.01, 0.04, 0.03, 0.2, 0.005}, expected{0.025, 0.05, 0.05, 0.2, 0.025};
  const std::vector<double> q = false_discovery_rates(p);
  ASSERT_EQ(q.size(), p.size());
  for (std::size_t i = 0; i < q.size(); ++i) EXPECT_NEAR(q[i], expected[i], 1e-15) << i;
}

// scipy.stats.spearmanr and pearsonr, with a tie.
TEST(Correlation, AgreesWithSciPy) {
  const std::vector<double> x{1, 2, 3, 4, 5, 6.5}, y{2, 1, 4, 4, 7, 3};
  EXPECT_NEAR(spearman(x, y), 0.5797710356524484, 1e-14);
  EXPECT_NEAR(pearson(x, y), 0.5397194188343517, 1e-14);
  EXPECT_TRUE(std::isnan(pearson(x, std::vector<double>(6, 1.0))));
}

// Of the 24 orders of four different numbers two have |r| = 1.
TEST(Permutation, FindsTheShareOfOrders) {
  const std::vector<double> x{1, 2, 3, 4}, y{10, 20, 30, 40};
  EXPECT_NEAR(permutation_p(x, y, 20000, 1), 2.0 / 24, 5 * std::sqrt(0.083 * 0.917 / 20000));
  EXPECT_EQ(permutation_p(x, y, 500, 1), permutation_p(x, y, 500, 1));
}

} // namespace
} // namespace noether::alignment
