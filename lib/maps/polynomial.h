// Polynomial maps of one variable whose coefficients are polynomials in mu, from text; where they have their extremes,
// and beyond what they escape.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace noether::maps {

/// One map: c[k] belongs to x^k, and the last is not 0.
struct Polynomial {
  std::vector<double> c, slopes; ///< of the map and of its derivative
  /// Every orbit that comes beyond this, |x| > escape, grows without bound. The largest double where none does.
  double escape = 0;

  explicit Polynomial(std::vector<double> coefficients);
  double operator()(double x) const { return at(c, x); }
  double slope(double x) const { return at(slopes, x); }
  /// ln |slope|; -infinity where the slope is no more than what rounding makes of a 0.
  double log_slope(double x) const;
  bool escaped(double x) const { return !(x <= escape && x >= -escape); }
  /// Horner's rule.
  static double at(const std::vector<double>& c, double x) {
    double value = 0;
    for (std::size_t k = c.size(); k-- > 0;) value = value * x + c[k];
    return value;
  }
};

/// The maps of all mu: c[k][j] belongs to x^k mu^j.
struct Family {
  std::vector<std::vector<double>> c;
  bool has_mu() const;
  /// The map at one mu, or its derivative by mu (of which neither slopes nor escape mean anything).
  Polynomial at(double mu) const;
  std::vector<double> by_mu(double mu) const;
};

/// Degrees in x and in mu of what can be read, at most.
inline constexpr std::int64_t kMostDegree = 64;

/// From sums, products (a * may be left out), powers, quotients by numbers, parentheses, numbers, x and mu:
/// "x^3 + (mu - 2) x^2 + (1 - 2 mu) x". Throws UsageError, which begins with `option` and names the place.
Family parse_family(const std::string& option, std::string_view text);

/// The error on the balanced line of the two-factor map: e^3 + (mu - 2) e^2 + (1 - 2 mu) e.
Family balanced_line();

/// All real roots, each once, in rising order; of even multiplicity too, which rounding may hide or feign: where the
/// value is no more than what rounding makes of it, a touching point counts as a root. None of a constant.
std::vector<double> real_roots(const std::vector<double>& c);

/// Where orbits begin that find the attracting cycles, each of which attracts a point of slope 0: a little (1e-6) above
/// each of these points, which may themselves fall on a cycle that repels. A point whose image is a fixed point that
/// repels attracts nothing; it is left out where others remain. Of a map without such points the number 0.1.
std::vector<double> critical_starts(const Polynomial& map);

} // namespace noether::maps
