// Maps from text against maps written out; roots and escape radii against what is known of them.
#include "base/error.h"
#include "base/random.h"
#include "maps/polynomial.h"
#include "maps/two_factor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace noether::maps {
namespace {

class Draws {
public:
  double operator()(double low, double high) { return low + (high - low) * random_.uniform(next_++); }

private:
  Random random_{7, Purpose::kOrbit};
  std::uint64_t next_ = 0;
};

TEST(Family, IsWhatTheTextSays) {
  const std::vector<std::pair<std::string, std::function<double(double, double)>>> cases{
      {"x^3 + (mu - 2) x^2 + (1 - 2 mu) x", [](double mu, double x) { return cubic(mu, x); }},
      {"mu x (1 - x)", [](double mu, double x) { return mu * x * (1 - x); }},
      {"-x^2+mu", [](double mu, double x) { return mu - x * x; }},
      {"+1 - mu*x^2", [](double mu, double x) { return 1 - mu * x * x; }},
      {"2x(x-1)(x+mu)/4 - 1e-1", [](double mu, double x) { return x * (x - 1) * (x + mu) / 2 - 0.1; }},
      {" ( ( x - mu ) ^ 2 ) ^ 2 - 3 / 2 / 3", [](double mu, double x) { return std::pow(x - mu, 4) - 0.5; }},
      {"(1 + mu)^0 x - .5 mu^3", [](double mu, double x) { return x - 0.5 * mu * mu * mu; }},
      {"x x mu mu", [](double mu, double x) { return x * x * mu * mu; }},
      {"1 - -2 x", nullptr}, // no second sign
  };
  Draws draw;
  for (const auto& [text, value] : cases) {
    if (!value) {
      EXPECT_THROW(parse_family("--map", text), UsageError) << text;
      continue;
    }
    const Family family = parse_family("--map", text);
    for (int i = 0; i < 50; ++i) {
      const double mu = draw(-2, 2), x = draw(-2, 2);
      EXPECT_NEAR(family.at(mu)(x), value(mu, x), 1e-12) << text;
      const double h = 1e-6;
      EXPECT_NEAR(family.at(mu).slope(x), (value(mu, x + h) - value(mu, x - h)) / (2 * h), 1e-7) << text;
      EXPECT_NEAR(Polynomial::at(family.by_mu(mu), x), (value(mu + h, x) - value(mu - h, x)) / (2 * h), 1e-7) << text;
    }
  }
}

// The same operations in the same order: the same bits.
TEST(Family, OfTheBalancedLineIsTheCubic) {
  Draws draw;
  const Family text = parse_family("--map", "x^3 + (mu - 2) x^2 + (1 - 2 mu) x");
  for (int i = 0; i < 1000; ++i) {
    const double mu = draw(0, 2), e = draw(-mu, 2);
    EXPECT_EQ(balanced_line().at(mu)(e), cubic(mu, e));
    EXPECT_EQ(text.at(mu)(e), cubic(mu, e));
  }
}

TEST(Family, SaysWhereTheTextIsWrong) {
  const auto says = [](const std::string& text) {
    try {
      parse_family("--map", text);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(says("x^3 + (mu - 2 x"), "--map: expected ) at the end of \"x^3 + (mu - 2 x\"");
  EXPECT_EQ(says("x^2 + c"), "--map: expected a number, x, mu or ( at character 7 of \"x^2 + c\", found c");
  EXPECT_EQ(says("mux"), "--map: expected a number, x, mu or ( at character 1 of \"mux\", found mux");
  EXPECT_EQ(says(""), "--map: expected a number, x, mu or ( at the end of \"\"");
  EXPECT_EQ(says("x ^ y"), "--map: expected a whole exponent up to 64 at character 5 of \"x ^ y\", found y");
  EXPECT_EQ(says("x^65"), "--map: expected a whole exponent up to 64 at character 3 of \"x^65\", found 6");
  EXPECT_EQ(says("x/mu"), "--map: expected a number other than 0 to divide by at character 3 of \"x/mu\", found mu");
  EXPECT_EQ(says("x / 0"), "--map: expected a number other than 0 to divide by at character 5 of \"x / 0\", found 0");
  EXPECT_EQ(says("x) + 1"), "--map: expected the end, or +, -, *, / or ^ at character 2 of \"x) + 1\", found )");
  EXPECT_EQ(says("mu^2 + 3"), "--map: expected a map of x, found \"mu^2 + 3\"");
  EXPECT_EQ(says("x - x"), "--map: expected a map of x, found \"x - x\"");
  EXPECT_EQ(says("1e308 x + 1e308 x"), "--map: coefficients of \"1e308 x + 1e308 x\" exceed every number");
  EXPECT_EQ(says("(x^40)(x^40)"),
            "--map: expected a degree of at most 64 in x and in mu at character 7 of \"(x^40)(x^40)\", found (");
}

TEST(Roots, AreThoseThatThePolynomialWasMadeOf) {
  const auto from = [](const std::vector<double>& roots) {
    std::vector<double> c{1};
    for (const double root : roots) {
      c.push_back(0);
      for (std::size_t k = c.size() - 1; k > 0; --k) c[k] = c[k - 1] - root * c[k];
      c[0] *= -root;
    }
    return c;
  };
  for (const std::vector<double>& roots :
       {std::vector<double>{2}, {-1, 3}, {-1.5, 0.25, 0.5, 4}, {-3, -2, -1, 0, 1, 2, 3}}) {
    const std::vector<double> found = real_roots(from(roots));
    ASSERT_EQ(found.size(), roots.size());
    for (std::size_t i = 0; i < roots.size(); ++i) EXPECT_NEAR(found[i], roots[i], 1e-11);
  }
  // Double and triple ones count once, to the root of what rounding does to a value; pairs that are not real not at
  // all.
  for (const std::vector<double>& roots : {std::vector<double>{1, 1}, {1, 1, 1}, {0, 0, 0, 0}}) {
    const std::vector<double> found = real_roots(from(roots));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NEAR(found[0], roots[0], 1e-4);
  }
  EXPECT_EQ(real_roots({1, 0, 1}).size(), 0U);
  EXPECT_EQ(real_roots({5}).size(), 0U);
}

TEST(Starts, OfTheBalancedLineAreTheOneThatFindsItsCycles) {
  for (const double mu : {0.3, 1.1, 1.9}) {
    const std::vector<double> starts = critical_starts(balanced_line().at(mu));
    ASSERT_EQ(starts.size(), 1U); // the other falls on -mu
    EXPECT_NEAR(starts[0], critical_point(mu) + 1e-6, 1e-12);
  }
  EXPECT_EQ(critical_starts(balanced_line().at(2)).size(), 2U); // both fall on fixed points that repel, and beside them
}

// Of random polynomials and random points beyond the radius: |x| grows from step to step, and for good. And the radius
// is not just large: of x^2 + mu it is (1 + sqrt(1 + 4 |mu|)) / 2, beside which there is a point that stays (mu <= 0).
TEST(Escape, IsBeyondTheRadius) {
  Draws draw;
  for (int i = 0; i < 300; ++i) {
    std::vector<double> c;
    for (int k = 0; k <= 2 + i % 7; ++k) c.push_back(std::pow(10, draw(-3, 3)) * (draw(-1, 1) < 0 ? -1 : 1));
    const Polynomial map(c);
    double x = map.escape * (1 + 1e-6) * (draw(-1, 1) < 0 ? -1 : 1);
    for (int n = 0; n < 20 && std::isfinite(map(x)); ++n) {
      ASSERT_GT(std::abs(map(x)), std::abs(x));
      x = map(x);
    }
  }
  for (const double mu : {-2.0, -0.7, 0.0})
    EXPECT_NEAR(Polynomial({mu, 0, 1}).escape, (1 + std::sqrt(1 - 4 * mu)) / 2, 1e-8);
  EXPECT_NEAR(Polynomial({3, -2}).escape, 3, 1e-8); // |-2 x + 3| > |x| for x > 3, and for x < -3 of course
  EXPECT_EQ(Polynomial({3, -1}).escape, std::numeric_limits<double>::max());
}

} // namespace
} // namespace noether::maps
