// Cycles are followed by their multiplier: for each value m of it Newton's method looks for the pair (x, mu) with
// f^p(x) = x and (f^p)'(x) = m. Unlike mu, m parametrizes a cycle and the one that repels, with which it appears, as
// one smooth curve: m rises from -1 over 1, where mu turns back, on to where the crisis is.
#include "maps/windows.h"

#include "base/threads.h"
#include "maps/phases.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace noether::maps {
namespace {

/// f^p at (x, mu) and its derivatives.
struct Jet {
  double value = 0, by_x = 1, by_mu = 0, by_xx = 0, by_x_mu = 0;
};

std::vector<double> slopes_of(const std::vector<double>& c) {
  std::vector<double> slopes;
  for (std::size_t k = 1; k < c.size(); ++k) slopes.push_back(static_cast<double>(k) * c[k]);
  return slopes;
}

Jet jet_of(const Family& family, double x, double mu, std::int64_t period) {
  const Polynomial map = family.at(mu);
  const std::vector<double> bends = slopes_of(map.slopes), moves = family.by_mu(mu), turns = slopes_of(moves);
  Jet jet{x};
  for (std::int64_t n = 0; n < period; ++n) {
    const double at = jet.value, slope = map.slope(at), bend = Polynomial::at(bends, at);
    jet = {map(at), slope * jet.by_x, slope * jet.by_mu + Polynomial::at(moves, at),
           bend * jet.by_x * jet.by_x + slope * jet.by_xx,
           bend * jet.by_x * jet.by_mu + slope * jet.by_x_mu + Polynomial::at(turns, at) * jet.by_x};
  }
  return jet;
}

struct Place {
  double x = 0, mu = 0;
};

/// The cycle with this multiplier near `from`; nothing where Newton's method does not come to rest.
std::optional<Place> with_multiplier(const Family& family, std::int64_t period, double multiplier, Place from) {
  Place at = from;
  double last = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 40; ++i) {
    const Jet jet = jet_of(family, at.x, at.mu, period);
    const double g = jet.value - at.x, h = jet.by_x - multiplier;
    const double determinant = (jet.by_x - 1) * jet.by_x_mu - jet.by_mu * jet.by_xx;
    const double x = (g * jet.by_x_mu - h * jet.by_mu) / determinant,
                 mu = ((jet.by_x - 1) * h - jet.by_xx * g) / determinant;
    if (!std::isfinite(x) || !std::isfinite(mu)) return std::nullopt;
    at.x -= x;
    at.mu -= mu;
    // As far as rounding lets it come: steps that are small and no longer shrink.
    const double size = std::abs(x) / std::max(1.0, std::abs(at.x)) + std::abs(mu) / std::max(1.0, std::abs(at.mu));
    if (size < 1e-15 || (size < 1e-11 && size >= last / 2)) return at;
    last = size;
  }
  return std::nullopt;
}

/// From a cycle with multiplier `from` to one with `to`, in steps that are halved where Newton's method fails or jumps.
std::optional<Place> follow(const Family& family, std::int64_t period, double from, double to, Place at) {
  double m = from, pace = (to - from) / 8;
  std::optional<Place> before; // at m - last pace, for a first guess
  double before_m = 0;
  for (int i = 0; i < 400; ++i) {
    if (m == to) return at;
    const double next = std::abs(to - m) <= std::abs(pace) ? to : m + pace;
    Place guess = at;
    if (before) {
      const double share = (next - m) / (m - before_m);
      guess = {at.x + share * (at.x - before->x), at.mu + share * (at.mu - before->mu)};
    }
    const std::optional<Place> found = with_multiplier(family, period, next, guess);
    // A jump to another cycle shows as a step far longer than the ones before it.
    const bool far = found && before &&
                     std::hypot(found->x - at.x, found->mu - at.mu) >
                         8 * std::abs((next - m) / (m - before_m)) * std::hypot(at.x - before->x, at.mu - before->mu) &&
                     std::hypot(found->x - at.x, found->mu - at.mu) > 1e-9;
    if (!found || far) {
      pace /= 2;
      if (std::abs(pace) < 1e-5) return std::nullopt;
      continue;
    }
    before = at;
    before_m = m;
    at = *found;
    m = next;
  }
  return std::nullopt;
}

double iterate(const Polynomial& map, double x, std::int64_t steps) {
  for (std::int64_t n = 0; n < steps; ++n) x = map(x);
  return x;
}

/// The critical point of the map at mu that is nearest to x.
std::optional<double> critical_near(const Polynomial& map, double x) {
  std::optional<double> found;
  for (const double point : real_roots(map.slopes))
    if (!found || std::abs(point - x) < std::abs(*found - x)) found = point;
  return found;
}

/// f^p(c) - c for the critical point nearest to `near`, which follows it.
struct Return {
  const Family& family;
  std::int64_t period;
  double at(double mu, double& near) const {
    const Polynomial map = family.at(mu);
    near = critical_near(map, near).value_or(near);
    double x = near;
    for (std::int64_t n = 0; n < period; ++n) {
      x = map(x);
      if (map.escaped(x)) return std::numeric_limits<double>::quiet_NaN();
    }
    return x - near;
  }
  double root(double low, double high, double low_value, double near) const {
    for (int i = 0; i < 100; ++i) {
      const double middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      ((at(middle, near) < 0) == (low_value < 0) ? low : high) = middle;
    }
    return low + (high - low) / 2;
  }
};

/// The superstable points of the doubled cycles, whose distances shrink by Feigenbaum's ratio.
void accumulate(const Family& family, const Place& superstable, Window& window) {
  constexpr double kRatio = 4.66920160910299;
  std::vector<double> at{window.superstable};
  double distance = (window.doubles - window.superstable) * 2; // a little more than to the first, 1.31 / 0.75
  for (std::int64_t period = 2 * window.period; at.size() < 9; period *= 2) {
    const Return back{family, period};
    // Beyond the last superstable point the orbit's return is of one sign up to the next.
    const double step = distance / (at.size() == 1 ? 40 : kRatio * 20);
    double near = superstable.x, from = at.back() + 4 * step, value = back.at(from, near);
    bool found = false;
    for (int i = 0; i < 80 && std::isfinite(value); ++i) {
      const double to = from + step, next = back.at(to, near);
      if ((next < 0) != (value < 0)) {
        at.push_back(back.root(std::min(from, to), std::max(from, to), step > 0 ? value : next, near));
        found = true;
        break;
      }
      from = to;
      value = next;
    }
    if (!found) break;
    distance = at.back() - at[at.size() - 2];
  }
  if (at.size() < 5) return;
  const auto limit = [&](std::size_t i) { return at[i] + (at[i] - at[i - 1]) / (kRatio - 1); };
  window.accumulates = limit(at.size() - 1);
  // Single points are exact to some 1e-13 at best.
  window.accumulates_error =
      std::max(std::abs(limit(at.size() - 1) - limit(at.size() - 2)), 1e-13 * std::max(1.0, std::abs(at.back())));
}

/// Where f^2p of the critical point meets the cycle that repels: before, the band about the critical point is mapped
/// into itself.
std::optional<double> crisis(const Family& family, std::int64_t period, double critical, Place tangent) {
  double near = critical;
  const auto inside = [&](const Place& at) {
    const Polynomial map = family.at(at.mu);
    near = critical_near(map, near).value_or(near);
    return (iterate(map, near, 2 * period) - at.x) * (near - at.x) > 0;
  };
  double m = 1;
  Place at = tangent;
  while (m < 100) {
    const double next = m == 1 ? 1.02 : m * 1.04;
    const std::optional<Place> there = follow(family, period, m, next, at);
    if (!there) return std::nullopt;
    if (!inside(*there)) {
      double low = m, high = next;
      for (int i = 0; i < 60; ++i) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) break;
        const std::optional<Place> between = with_multiplier(family, period, middle, at);
        if (!between) return std::nullopt;
        if (inside(*between)) {
          low = middle;
          at = *between;
        } else {
          high = middle;
        }
      }
      return m == 1 ? std::nullopt : std::optional<double>(at.mu);
    }
    m = next;
    at = *there;
  }
  return std::nullopt;
}

/// The window around a superstable cycle; nothing where it opens by no tangent bifurcation.
std::optional<Window> window_at(const Family& family, std::int64_t period, const Place& superstable) {
  Window window;
  window.period = period;
  window.superstable = superstable.mu;
  const std::optional<Place> opens = follow(family, period, 0, 1, superstable),
                             doubles = follow(family, period, 0, -1, superstable);
  if (!opens || !doubles) return std::nullopt;
  // At a doubling's begin, and where a cycle splits, the derivative by mu is 0 (and points fall together).
  const Jet jet = jet_of(family, opens->x, opens->mu, period),
            there = jet_of(family, superstable.x, superstable.mu, period);
  if (std::abs(jet.by_mu) < 1e-4 * std::abs(there.by_mu)) return std::nullopt;
  // Opening, mu turns back: doubling lies on the superstable point's other side.
  if ((opens->mu - superstable.mu) * (doubles->mu - superstable.mu) >= 0) return std::nullopt;
  window.opens = opens->mu;
  window.doubles = doubles->mu;
  accumulate(family, superstable, window);
  window.closes = crisis(family, period, superstable.x, *opens);
  return window;
}

} // namespace

std::vector<Window> windows(const Family& family, const WindowOptions& options) {
  constexpr std::int64_t kPiece = 64;
  std::vector<std::vector<Window>> found(static_cast<std::size_t>((options.count + kPiece - 1) / kPiece));
  const auto mu_at = [&](std::int64_t i) {
    return options.low + (options.high - options.low) * static_cast<double>(i) / static_cast<double>(options.count);
  };
  parallel_for(static_cast<std::int64_t>(found.size()), options.threads, [&](std::int64_t piece) {
    // The first returns of every critical point at the last mu that was looked at.
    std::vector<double> points;
    std::vector<std::vector<double>> returns;
    for (std::int64_t i = piece * kPiece; i <= std::min(options.count, (piece + 1) * kPiece); ++i) {
      const Polynomial map = family.at(mu_at(i));
      const std::vector<double> critical = real_roots(map.slopes);
      std::vector<std::vector<double>> now;
      for (const double point : critical) {
        double x = point;
        now.emplace_back();
        for (std::int64_t n = 1; n <= options.longest && !map.escaped(x = map(x)); ++n) now.back().push_back(x - point);
      }
      for (std::size_t k = 0; k < critical.size() && critical.size() == points.size(); ++k)
        for (std::size_t n = 1; n < std::min(now[k].size(), returns[k].size()); ++n) {
          const double before = returns[k][n], after = now[k][n];
          if ((before < 0) == (after < 0)) continue;
          const auto period = static_cast<std::int64_t>(n) + 1;
          const double mu = Return{family, period}.root(mu_at(i - 1), mu_at(i), before, critical[k]);
          const Polynomial there = family.at(mu);
          const double point = critical_near(there, critical[k]).value_or(critical[k]);
          // Not where a shorter cycle closes.
          bool shorter = false;
          for (std::int64_t divisor = 1; divisor < period; ++divisor)
            shorter = shorter || (period % divisor == 0 && std::abs(iterate(there, point, divisor) - point) < 1e-7);
          if (shorter) continue;
          if (const std::optional<Window> window = window_at(family, period, {point, mu}))
            found[static_cast<std::size_t>(piece)].push_back(*window);
        }
      points = critical;
      returns = now;
    }
  });
  std::vector<Window> all;
  for (const std::vector<Window>& some : found) all.insert(all.end(), some.begin(), some.end());
  std::stable_sort(all.begin(), all.end(), [](const Window& a, const Window& b) {
    return std::min(a.opens, a.closes.value_or(a.doubles)) < std::min(b.opens, b.closes.value_or(b.doubles));
  });
  // A cycle through several critical points, or through one at several mu, is one window.
  std::vector<Window> list;
  for (const Window& window : all)
    if (std::none_of(list.begin(), list.end(), [&](const Window& other) {
          return other.period == window.period &&
                 std::abs(other.opens - window.opens) < 1e-9 * std::max(1.0, std::abs(window.opens)) &&
                 std::abs(other.doubles - window.doubles) < 1e-9 * std::max(1.0, std::abs(window.doubles));
        }))
      list.push_back(window);
  for (Window& window : list) {
    double smallest = std::numeric_limits<double>::infinity();
    for (const Window& other : list) {
      if (!other.closes || &other == &window) continue;
      const auto [low, high] = std::minmax(other.opens, *other.closes);
      if (low <= window.superstable && window.superstable <= high && high - low < smallest &&
          window.period % other.period == 0 && window.period > other.period) {
        smallest = high - low;
        window.within = other.period;
      }
    }
  }
  return list;
}

std::vector<Doubling> doublings(const Family& family, double low, double high, std::int64_t count) {
  std::vector<Doubling> found;
  PhaseOptions options;
  double mu = low, reach = (high - low) / 2;
  while (static_cast<std::int64_t>(found.size()) < count) {
    const Polynomial map = family.at(mu);
    Attractor attractor;
    for (const double start : critical_starts(map)) {
      attractor = settle(map, start, options);
      if (attractor.phase == Phase::periodic) break;
    }
    const std::int64_t expected = found.empty() ? attractor.period : 2 * found.back().period;
    if (attractor.phase != Phase::periodic || attractor.period != expected) break;
    const double multiplier = jet_of(family, attractor.e, mu, expected).by_x;
    const std::optional<Place> doubles = follow(family, expected, multiplier, -1, {attractor.e, mu});
    if (!doubles || doubles->mu <= mu || doubles->mu > high) break;
    // A little further the orbit settles on the doubled cycle; the next doubling is a fifth or so as far as the last.
    if (!found.empty()) reach = doubles->mu - found.back().mu;
    found.push_back({expected, doubles->mu});
    options.longest = 4 * expected;
    options.transient = 200000;
    options.steps = std::max<std::int64_t>(20000, 40 * expected);
    mu = doubles->mu + (found.size() == 1 ? std::min(reach, std::max(1.0, std::abs(mu)) * 0.2) : reach) / 20;
  }
  return found;
}

} // namespace noether::maps
