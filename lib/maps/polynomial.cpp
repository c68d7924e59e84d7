#include "maps/polynomial.h"

#include "base/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace noether::maps {
namespace {

using Terms = std::vector<std::vector<double>>; ///< as Family::c

/// Recursive descent; `at_` is the place of the next character.
class Parser {
public:
  Parser(const std::string& option, std::string_view text) : option_(option), text_(text) {}

  Terms whole() {
    Terms found = sum();
    if (at_ < text_.size()) fail("the end, or +, -, *, / or ^");
    return found;
  }

private:
  [[noreturn]] void fail(const std::string& expected) {
    blanks();
    if (at_ == text_.size()) throw UsageError("{}: expected {} at the end of \"{}\"", option_, expected, text_);
    throw UsageError("{}: expected {} at character {} of \"{}\", found {}", option_, expected, at_ + 1, text_, word());
  }
  /// What stands at the place: a name as a whole, else one character.
  std::string word() const {
    std::size_t end = at_;
    while (end < text_.size() && std::isalpha(static_cast<unsigned char>(text_[end])) != 0) ++end;
    return std::string(text_.substr(at_, std::max<std::size_t>(1, end - at_)));
  }
  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  char peek() {
    blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  Terms sum() {
    Terms found{{0}};
    double sign = take('-') ? -1 : (take('+'), 1);
    while (true) {
      const Terms one = product();
      if (found.size() < one.size()) found.resize(one.size(), {0});
      for (std::size_t k = 0; k < one.size(); ++k) {
        if (found[k].size() < one[k].size()) found[k].resize(one[k].size());
        for (std::size_t j = 0; j < one[k].size(); ++j) found[k][j] += sign * one[k][j];
      }
      if (take('+'))
        sign = 1;
      else if (take('-'))
        sign = -1;
      else
        return found;
    }
  }

  Terms product() {
    Terms found = power();
    while (true) {
      const char next = peek();
      if (take('/')) {
        const std::size_t place = at_;
        const Terms by = power();
        if (by.size() > 1 || by[0].size() > 1 || by[0][0] == 0) {
          at_ = place;
          fail("a number other than 0 to divide by");
        }
        for (std::vector<double>& row : found)
          for (double& value : row) value /= by[0][0];
      } else if (take('*') || next == 'x' || next == 'm' || next == '(' || next == '.' ||
                 (next >= '0' && next <= '9')) {
        const std::size_t place = at_;
        found = times(found, power(), place);
      } else {
        return found;
      }
    }
  }

  Terms power() {
    const std::size_t place = at_;
    Terms base = primary();
    if (!take('^')) return base;
    blanks();
    std::int64_t exponent = -1;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), exponent);
    if (error != std::errc{} || exponent < 0 || exponent > kMostDegree)
      fail(fmt::format("a whole exponent up to {}", kMostDegree));
    at_ = static_cast<std::size_t>(end - text_.data());
    Terms found{{1}};
    for (std::int64_t i = 0; i < exponent; ++i) found = times(found, base, place);
    return found;
  }

  Terms primary() {
    const char next = peek();
    if (take('(')) {
      if (++depth_ > 200) fail("fewer parentheses");
      Terms found = sum();
      --depth_;
      if (!take(')')) fail(")");
      return found;
    }
    if (word_is("x")) return {{0}, {1}};
    if (word_is("mu")) return {{0, 1}};
    double value = 0;
    if (next == '.' || (next >= '0' && next <= '9')) {
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error == std::errc{}) {
        at_ = static_cast<std::size_t>(end - text_.data());
        return {{value}};
      }
    }
    fail("a number, x, mu or (");
  }
  /// A name, unless it goes on: "mux" is none.
  bool word_is(std::string_view name) {
    if (at_ >= text_.size() || word() != name) return false;
    at_ += name.size();
    return true;
  }

  Terms times(const Terms& a, const Terms& b, std::size_t place) {
    const auto width = [](const Terms& terms) {
      std::size_t most = 1;
      for (const std::vector<double>& row : terms) most = std::max(most, row.size());
      return most;
    };
    const std::size_t rows = a.size() + b.size() - 1, columns = width(a) + width(b) - 1;
    if (rows > kMostDegree + 1 || columns > kMostDegree + 1) {
      at_ = place;
      fail(fmt::format("a degree of at most {} in x and in mu", kMostDegree));
    }
    Terms found(rows, std::vector<double>(columns));
    for (std::size_t k = 0; k < a.size(); ++k)
      for (std::size_t j = 0; j < a[k].size(); ++j)
        for (std::size_t m = 0; m < b.size(); ++m)
          for (std::size_t n = 0; n < b[m].size(); ++n) found[k + m][j + n] += a[k][j] * b[m][n];
    return found;
  }

  const std::string& option_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

void trim(std::vector<double>& c) {
  while (c.size() > 1 && c.back() == 0) c.pop_back();
}

/// With t beyond this, |f(x)| >= (1 + g(|x|)) |x| for |x| = t, where g(t) = |c_d| t^(d-1) - sum_{0<k<d} |c_k| t^(k-1) -
/// |c_0| / t - 1 is positive and grows with t: g is t^(d-1) times h(t) = |c_d| - sum_k |c_k| t^(k-d) - t^(1-d), which
/// grows, and d >= 1. So |x| grows at least geometrically. The root of h is closed in on from above. There t h'(t) >=
/// |c_d|, and what is summed is no more than 2 |c_d|: a relative 1e-9 is more than what rounding can do for degrees up
/// to 64.
double escape_radius(const std::vector<double>& c) {
  const double never = std::numeric_limits<double>::max();
  const std::size_t degree = c.size() - 1;
  if (degree == 0) return never; // everything is at one point after a step
  if (degree == 1 && std::abs(c[1]) <= 1) return never;
  const auto h = [&](double t) {
    double less = 0;
    for (std::size_t k = 0; k < degree; ++k) less = (less + std::abs(c[k]) + (k == 1 ? 1 : 0)) / t;
    return std::abs(c[degree]) - less - (degree == 1 ? 1 : 0);
  };
  double high = 1;
  while (!(h(high) > 0) && high < never / 4) high *= 2;
  if (!(h(high) > 0)) return never;
  double low = high;
  while (h(low) > 0 && low > std::numeric_limits<double>::min()) low /= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = low + (high - low) / 2;
    (h(middle) > 0 ? high : low) = middle;
  }
  return high * (1 + 1e-9);
}

/// What rounding may make of a value of the polynomial.
double noise(const std::vector<double>& c, double x) {
  double sum = 0;
  for (std::size_t k = c.size(); k-- > 0;) sum = sum * std::abs(x) + std::abs(c[k]);
  return 4 * static_cast<double>(c.size()) * std::numeric_limits<double>::epsilon() * sum;
}

} // namespace

Polynomial::Polynomial(std::vector<double> coefficients) : c(std::move(coefficients)) {
  trim(c);
  for (std::size_t k = 1; k < c.size(); ++k) slopes.push_back(static_cast<double>(k) * c[k]);
  escape = escape_radius(c);
}

double Polynomial::log_slope(double x) const {
  const double size = std::abs(slope(x));
  if (size < 1e-9 && size <= noise(slopes, x)) return -std::numeric_limits<double>::infinity();
  return std::log(size);
}

bool Family::has_mu() const {
  return std::any_of(c.begin(), c.end(), [](const std::vector<double>& row) {
    return std::any_of(row.begin() + 1, row.end(), [](double value) { return value != 0; });
  });
}

Polynomial Family::at(double mu) const {
  std::vector<double> values;
  for (const std::vector<double>& row : c) values.push_back(Polynomial::at(row, mu));
  return Polynomial(std::move(values));
}

std::vector<double> Family::by_mu(double mu) const {
  std::vector<double> values;
  for (const std::vector<double>& row : c) {
    double value = 0;
    for (std::size_t j = row.size(); j-- > 1;) value = value * mu + static_cast<double>(j) * row[j];
    values.push_back(value);
  }
  return values;
}

Family parse_family(const std::string& option, std::string_view text) {
  Family found{Parser(option, text).whole()};
  for (std::vector<double>& row : found.c) {
    for (const double value : row)
      if (!std::isfinite(value)) throw UsageError("{}: coefficients of \"{}\" exceed every number", option, text);
    trim(row);
  }
  while (found.c.size() > 1 && found.c.back().size() == 1 && found.c.back()[0] == 0) found.c.pop_back();
  if (found.c.size() == 1) throw UsageError("{}: expected a map of x, found \"{}\"", option, text);
  return found;
}

Family balanced_line() { return {{{0}, {1, -2}, {-2, 1}, {1}}}; }

std::vector<double> real_roots(const std::vector<double>& coefficients) {
  std::vector<double> c = coefficients;
  trim(c);
  if (c.size() <= 1) return {};
  if (c.size() == 2) return {-c[0] / c[1]};
  std::vector<double> slopes;
  for (std::size_t k = 1; k < c.size(); ++k) slopes.push_back(static_cast<double>(k) * c[k]);
  // Between two extremes the polynomial is monotone. Cauchy's bound holds all roots.
  double bound = 0;
  for (std::size_t k = 0; k + 1 < c.size(); ++k) bound = std::max(bound, std::abs(c[k] / c.back()));
  std::vector<double> ends = real_roots(slopes), roots;
  ends.insert(ends.begin(), -1 - bound);
  ends.push_back(1 + bound);
  const auto add = [&roots](double root) {
    if (roots.empty() || root - roots.back() > 1e-7 * std::max(1.0, std::abs(root))) roots.push_back(root);
  };
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    double low = ends[i], high = ends[i + 1];
    const double from = Polynomial::at(c, low), to = Polynomial::at(c, high);
    const bool touches = i > 0 && std::abs(from) <= noise(c, low);
    if (touches) add(low);
    if (!(from < 0 && to > 0) && !(from > 0 && to < 0)) continue;
    if (touches || (i + 2 < ends.size() && std::abs(to) <= noise(c, high))) continue; // that end is the root
    for (int n = 0; n < 200; ++n) {
      const double middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      ((Polynomial::at(c, middle) < 0) == (from < 0) ? low : high) = middle;
    }
    add(low + (high - low) / 2);
  }
  return roots;
}

std::vector<double> critical_starts(const Polynomial& map) {
  std::vector<double> points = real_roots(map.slopes);
  const auto falls = [&](double x) {
    const double image = map(x);
    return std::abs(map(image) - image) <= 1e-12 * std::max(1.0, std::abs(image)) && std::abs(map.slope(image)) > 1;
  };
  if (!std::all_of(points.begin(), points.end(), falls)) std::erase_if(points, falls);
  for (double& point : points) point += 1e-6;
  if (points.empty()) points.push_back(0.1);
  return points;
}

} // namespace noether::maps
