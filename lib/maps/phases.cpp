#include "maps/phases.h"

#include "base/error.h"
#include "maps/two_factor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

namespace noether::maps {
namespace {

/// Of an orbit by which attractors are told apart.
constexpr std::int64_t kPoints = 4096;

constexpr std::array kNames{"monotone", "catapult", "periodic", "chaotic", "divergent", "undecided"};

/// The least of F(e) / e over [-mu, 2]: no loss ever rises where it is at least -1 (it is at most 1 there, as
/// F(e) / e - 1 = (e - 2)(e + mu)). A parabola; its least is looked for by golden section.
double least_ratio(double mu) {
  const auto ratio = [mu](double e) { return (e + (mu - 2)) * e + 1 - 2 * mu; };
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double low = -mu, high = 2;
  while (high - low > 1e-8) { // a parabola is flat there: the value is exact to the square of it
    const double left = high - golden * (high - low), right = low + golden * (high - low);
    (ratio(left) < ratio(right) ? high : low) = ratio(left) < ratio(right) ? right : left;
  }
  return ratio((low + high) / 2);
}

double bisect(double low, double high, const std::function<bool(double)>& beyond) {
  while (high - low > 1e-13 * high) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) break;
    (beyond(middle) ? high : low) = middle;
  }
  return (low + high) / 2;
}

/// The point of a cycle of this period near e, by Newton's method on F^period(e) - e; and its multiplier.
struct Cycle {
  double e = 0, multiplier = 0;
};
Cycle refine(double mu, double e, std::int64_t period) {
  double slope = 1;
  for (int i = 0; i < 50; ++i) {
    double x = e;
    slope = 1;
    for (std::int64_t k = 0; k < period; ++k) {
      slope *= cubic_slope(mu, x);
      x = cubic(mu, x);
    }
    const double change = (x - e) / (slope - 1);
    e -= change;
    if (std::abs(change) < 1e-15) break;
  }
  return {e, slope};
}

/// (-mu, 2) is mapped into itself as long as no value exceeds 2: the largest is that at the critical point.
bool diverges(double mu) { return cubic(mu, critical_point(mu)) > 2; }

} // namespace

std::string_view name_of(Phase phase) { return kNames[static_cast<std::size_t>(phase)]; }

Attractor settle(const Polynomial& map, double start, const PhaseOptions& options, std::vector<double>* points) {
  Attractor found;
  double e = start;
  constexpr std::int64_t kBlocks = 20;
  const std::int64_t block = std::max<std::int64_t>(1, options.steps / kBlocks);
  const auto diverged = [&](double at, std::int64_t step) {
    if (!map.escaped(at)) return false;
    found = {};
    found.phase = Phase::divergent;
    found.escaped = step;
    return true;
  };
  if (diverged(e, 0)) return found;
  for (std::int64_t i = 1; i <= options.transient; ++i) {
    e = map(e);
    if (diverged(e, i)) return found;
  }
  std::array<double, kBlocks> sums{};
  std::vector<double> orbit;
  double x = e;
  for (std::int64_t i = 0; i < block * kBlocks; ++i) {
    if (i <= options.longest) orbit.push_back(x);
    if (points != nullptr && i < kPoints) points->push_back(x);
    sums[static_cast<std::size_t>(i / block)] += map.log_slope(x);
    x = map(x);
    if (diverged(x, options.transient + i + 1)) return found;
  }
  while (static_cast<std::int64_t>(orbit.size()) <= options.longest) orbit.push_back(map(orbit.back()));
  double mean = 0, squares = 0;
  for (double& sum : sums) mean += (sum /= static_cast<double>(block)) / kBlocks;
  for (const double sum : sums) squares += (sum - mean) * (sum - mean);
  found.exponent = mean;
  for (std::int64_t period = 1; period <= options.longest; ++period)
    if (mean < 0 && std::abs(orbit[static_cast<std::size_t>(period)] - e) <= options.tolerance) {
      found.period = period;
      found.e = *std::min_element(orbit.begin(), orbit.begin() + period);
      found.phase = Phase::periodic;
      return found;
    }
  found.e = e;
  if (std::isfinite(mean) && mean > 3 * std::sqrt(squares / (kBlocks - 1) / kBlocks)) found.phase = Phase::chaotic;
  return found;
}

bool one_attractor(std::span<const double> a, std::span<const double> b) {
  struct Set {
    std::vector<double> sorted;
    std::size_t period = 0; ///< 0: it does not repeat
    double least = 0, size = 0;
  };
  const auto look = [](std::span<const double> points) {
    Set set{{points.begin(), points.end()}};
    std::sort(set.sorted.begin(), set.sorted.end());
    set.least = set.sorted.front();
    set.size = std::max(1.0, std::max(std::abs(set.sorted.front()), std::abs(set.sorted.back())));
    for (std::size_t period = 1; period <= points.size() / 2 && set.period == 0; ++period) {
      std::size_t i = 0;
      while (i + period < points.size() && std::abs(points[i + period] - points[i]) <= 1e-6 * set.size) ++i;
      if (i + period == points.size()) set.period = period;
    }
    return set;
  };
  const Set first = look(a), second = look(b);
  if (first.period > 0 || second.period > 0)
    return first.period == second.period && std::abs(first.least - second.least) <= 1e-6 * first.size;
  const auto share = [](const Set& of, const Set& in) {
    const double near =
        4 * (in.sorted.back() - in.sorted.front()) / static_cast<double>(in.sorted.size()) + 1e-6 * in.size;
    std::size_t count = 0;
    for (const double x : of.sorted) {
      const auto next = std::lower_bound(in.sorted.begin(), in.sorted.end(), x - near);
      count += next != in.sorted.end() && *next <= x + near ? 1U : 0U;
    }
    return static_cast<double>(count) / static_cast<double>(of.sorted.size());
  };
  return share(first, second) >= 0.5 || share(second, first) >= 0.5;
}

std::vector<Branch> branches(const Polynomial& map, std::span<const double> starts, const PhaseOptions& options) {
  std::vector<Branch> found;
  std::vector<std::vector<double>> points;
  for (const double start : starts) {
    std::vector<double> orbit;
    const Attractor attractor = settle(map, start, options, &orbit);
    const bool gone = attractor.phase == Phase::divergent;
    std::size_t i = 0;
    while (i < found.size() &&
           ((found[i].attractor.phase == Phase::divergent) != gone || (!gone && !one_attractor(points[i], orbit))))
      ++i;
    if (i == found.size()) {
      found.push_back({attractor, 0, start});
      points.push_back(orbit);
    }
    ++found[i].starts;
  }
  return found;
}

Attractor classify(double mu, const PhaseOptions& options) {
  if (!(mu > 0)) throw Error("mu: expected a number above 0, found {:g}", mu);
  const Polynomial line = balanced_line().at(mu);
  Attractor found = settle(line, critical_starts(line).front(), options);
  if (found.phase == Phase::divergent) return found;
  if (diverges(mu)) return {}; // but not yet: a little above 2 that takes long
  if (found.period == 1 && std::abs(found.e) <= std::sqrt(options.tolerance)) {
    found.phase = least_ratio(mu) >= -1 ? Phase::monotone : Phase::catapult;
    found.e = 0; // which it came near to
  }
  return found;
}

std::vector<double> period_doublings(std::int64_t count) {
  std::vector<double> found;
  double mu = 0.9, e = 0;
  std::int64_t period = 1;
  double reach = 0.2; // how far the next doubling may be, at most
  for (std::int64_t k = 0; k < count; ++k, period *= 2) {
    // Follow the cycle in small steps until it is no longer stable; then close in on where that was.
    const double pace = reach / 200;
    Cycle cycle = refine(mu, e, period), next = cycle;
    while ((next = refine(mu + pace, cycle.e, period)).multiplier > -1) {
      mu += pace;
      cycle = next;
    }
    double low = mu, high = mu + pace;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      const Cycle there = refine(middle, cycle.e, period);
      if (there.multiplier > -1) {
        low = middle;
        cycle = there;
      } else {
        high = middle;
      }
    }
    found.push_back((low + high) / 2);
    if (found.size() > 1) reach = (found[found.size() - 1] - found[found.size() - 2]) / 2;
    // A little further on the orbit itself settles on the doubled cycle.
    mu = found.back() + reach / 20;
    e = cycle.e + 1e-3 * reach;
    for (int i = 0; i < 200000; ++i) e = cubic(mu, e);
  }
  return found;
}

std::vector<Threshold> thresholds(std::int64_t doublings) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Threshold> list{
      {"monotone", "catapult", bisect(0.5, 1, [](double mu) { return least_ratio(mu) < -1; }), 2 * std::sqrt(2.0) - 2}};
  std::string from = "catapult";
  const std::vector<double> at = period_doublings(doublings);
  for (std::size_t k = 0; k < at.size(); ++k) {
    const std::string to = fmt::format("period {}", std::int64_t{2} << k);
    list.push_back({from, to, at[k], k == 0 ? 1 : k == 1 ? std::sqrt(5.0) - 1 : nan});
    from = to;
  }
  list.push_back({"bounded", "divergent", bisect(1.9, 2.5, diverges), 2});
  return list;
}

} // namespace noether::maps
