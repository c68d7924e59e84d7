#include "alignment/statistics.h"

#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace noether::alignment {
namespace {

double log_choose(std::int64_t n, std::int64_t k) {
  const auto gamma = [](std::int64_t x) { return std::lgamma(static_cast<double>(x) + 1); };
  return gamma(n) - gamma(k) - gamma(n - k);
}

std::vector<double> ranks_of(std::span<const double> x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
  std::vector<double> ranks(x.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && x[order[end]] == x[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
    begin = end;
  }
  return ranks;
}

} // namespace

Tails hypergeometric_tails(std::int64_t all, std::int64_t members, std::int64_t drawn, std::int64_t found) {
  const std::int64_t least = std::max<std::int64_t>(0, drawn - (all - members)), most = std::min(members, drawn);
  const auto term = [&](std::int64_t k) {
    return std::exp(log_choose(members, k) + log_choose(all - members, drawn - k) - log_choose(all, drawn));
  };
  Tails tails{0, 0};
  for (std::int64_t k = least; k <= most; ++k) {
    const double p = term(k);
    if (k >= found) tails.at_least += p;
    if (k <= found) tails.at_most += p;
  }
  return {std::min(1.0, tails.at_least), std::min(1.0, tails.at_most)};
}

double two_sided(const Tails& tails) { return std::min(1.0, 2 * std::min(tails.at_least, tails.at_most)); }

std::vector<double> false_discovery_rates(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> q(p.size());
  double least = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    least = std::min(least, p[order[i]] * static_cast<double>(p.size()) / static_cast<double>(i + 1));
    q[order[i]] = least;
  }
  return q;
}

double pearson(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  const double mx = std::accumulate(x.begin(), x.end(), 0.0) / n, my = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    xy += (x[i] - mx) * (y[i] - my);
    yy += (y[i] - my) * (y[i] - my);
  }
  return xy / std::sqrt(xx * yy);
}

double spearman(std::span<const double> x, std::span<const double> y) { return pearson(ranks_of(x), ranks_of(y)); }

double permutation_p(std::span<const double> x, std::span<const double> y, std::int64_t rounds, std::uint64_t seed) {
  const double reached = std::abs(pearson(x, y)) - 1e-12; // rounding must not tell equal orders apart
  if (std::isnan(reached)) return reached;
  const Random random(seed, Purpose::kPermutation);
  std::vector<double> shuffled(y.begin(), y.end());
  std::int64_t as_far = 1;
  std::uint64_t draw = 0;
  for (std::int64_t round = 1; round < rounds; ++round) {
    for (std::size_t i = shuffled.size(); i > 1; --i) std::swap(shuffled[i - 1], shuffled[random.below(draw++, i)]);
    if (std::abs(pearson(x, shuffled)) >= reached) ++as_far;
  }
  return static_cast<double>(as_far) / static_cast<double>(rounds);
}

} // namespace noether::alignment
