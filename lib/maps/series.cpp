#include "maps/series.h"

#include "base/error.h"
#include "base/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace noether::maps {
namespace {

constexpr std::array kNames{"monotone", "catapult", "periodic", "chaotic", "divergent", "undecided"};

/// Pearson's correlation of y with 1, 2, 3, ...
double correlation_with_time(std::span<const double> y) {
  const auto n = static_cast<double>(y.size());
  double mean = 0;
  for (const double value : y) mean += value / n;
  double xy = 0, yy = 0, xx = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x = static_cast<double>(i) - (n - 1) / 2;
    xy += x * (y[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
    xx += x * x;
  }
  return yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

} // namespace

std::string_view name_of(Course course) { return kNames[static_cast<std::size_t>(course)]; }

double chaos_test(std::span<const double> values) {
  constexpr std::size_t kFewest = 50, kMost = 2000; // the work grows with the square
  constexpr int kFrequencies = 100;
  if (values.size() < kFewest) return std::numeric_limits<double>::quiet_NaN();
  if (values.size() > kMost) values = values.last(kMost);
  const std::size_t n = values.size(), lags = n / 10;
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(n);
  const Random random(0, Purpose::kChaosTest);
  std::vector<double> found, p(n + 1), q(n + 1), displacement(lags);
  for (int k = 0; k < kFrequencies; ++k) {
    // Away from 0 and pi, where any series looks resonant.
    const double c = std::numbers::pi * (0.2 + 0.6 * random.uniform(static_cast<std::uint64_t>(k)));
    for (std::size_t i = 0; i < n; ++i) {
      p[i + 1] = p[i] + values[i] * std::cos(static_cast<double>(i + 1) * c);
      q[i + 1] = q[i] + values[i] * std::sin(static_cast<double>(i + 1) * c);
    }
    for (std::size_t lag = 1; lag <= lags; ++lag) {
      double sum = 0;
      for (std::size_t i = 1; i + lags <= n; ++i)
        sum += (p[i + lag] - p[i]) * (p[i + lag] - p[i]) + (q[i + lag] - q[i]) * (q[i + lag] - q[i]);
      // The term of the mean oscillates, and is known: it is taken away.
      displacement[lag - 1] = sum / static_cast<double>(n - lags) -
                              mean * mean * (1 - std::cos(static_cast<double>(lag) * c)) / (1 - std::cos(c));
    }
    found.push_back(correlation_with_time(displacement));
  }
  std::nth_element(found.begin(), found.begin() + kFrequencies / 2, found.end());
  return found[kFrequencies / 2];
}

Series classify_series(std::span<const double> values, const SeriesOptions& options) {
  if (values.empty()) throw Error("expected 8 values or more, found none");
  Series found;
  found.chaos = std::numeric_limits<double>::quiet_NaN();
  found.first = values.front();
  found.last = values.back();
  const double limit = options.limit * std::abs(found.first);
  for (const double value : values) {
    if (!std::isfinite(value) || (limit > 0 && std::abs(value) > limit)) {
      found.course = Course::divergent;
      found.largest = std::max(found.largest, std::abs(value));
      return found;
    }
    found.largest = std::max(found.largest, std::abs(value));
  }
  if (values.size() < 8) throw Error("expected 8 values or more, found {}", values.size());
  const double rise = options.tolerance * found.largest;
  const std::size_t third = values.size() - values.size() / 3;
  std::int64_t late_rises = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] - values[i - 1] > rise) {
      if (found.rises++ == 0) found.first_rise = static_cast<std::int64_t>(i);
      late_rises += i >= third ? 1 : 0;
    }
  if (found.rises == 0) {
    found.course = Course::monotone;
    return found;
  }
  const std::span<const double> tail = values.subspan(third);
  const auto [low, high] = std::minmax_element(tail.begin(), tail.end());
  const double range = *high - *low;
  // Twice the period at least, or anything would do.
  for (std::size_t period = 2;
       range > rise && period <= static_cast<std::size_t>(options.longest) && 2 * period <= tail.size(); ++period) {
    bool closes = true;
    for (std::size_t i = period; closes && i < tail.size(); ++i)
      closes = std::abs(tail[i] - tail[i - period]) <= std::max(options.tolerance * range, 1e-300);
    if (closes) {
      found.course = Course::periodic;
      found.period = static_cast<std::int64_t>(period);
      return found;
    }
  }
  if (late_rises == 0 && found.last < found.first) {
    found.course = Course::catapult;
    return found;
  }
  found.chaos = chaos_test(tail);
  if (found.chaos > 0.5) found.course = Course::chaotic;
  return found;
}

} // namespace noether::maps
