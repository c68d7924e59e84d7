#include "alignment/compare.h"

#include "alignment/enrich.h"
#include "alignment/statistics.h"
#include "base/threads.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace noether::alignment {
namespace {

std::vector<double> values_of(std::span<const float> all, std::span<const std::int64_t> candidates) {
  std::vector<double> values;
  values.reserve(candidates.size());
  for (const std::int64_t id : candidates) values.push_back(all[static_cast<std::size_t>(id)]);
  return values;
}

double deviation(std::span<const double> x) {
  const double n = static_cast<double>(x.size()), mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / n);
}

} // namespace

std::vector<HeadComparison> compare(const Scores& a, const Scores& b, std::span<const std::int64_t> candidates,
                                    std::int64_t top) {
  const std::int64_t heads = a.alignment.heads();
  std::vector<HeadComparison> all(static_cast<std::size_t>(a.alignment.layers() * heads));
  parallel_for(std::ssize(all), 0, [&](std::int64_t i) {
    HeadComparison& row = all[static_cast<std::size_t>(i)];
    row.layer = i / heads;
    row.head = i % heads;
    const std::span<const float> of_a = a.alignment.at(row.layer, row.head), of_b = b.alignment.at(row.layer, row.head);
    const std::vector<double> x = values_of(of_a, candidates), y = values_of(of_b, candidates);
    row.correlation = spearman(x, y);
    row.spread_a = deviation(x);
    row.spread_b = deviation(y);
    row.best_a = extreme_ids(of_a, candidates, top, false);
    row.best_b = extreme_ids(of_b, candidates, top, false);
    row.overlap = std::count_if(row.best_a.begin(), row.best_a.end(), [&](std::int64_t id) {
      return std::find(row.best_b.begin(), row.best_b.end(), id) != row.best_b.end();
    });
  });
  return all;
}

} // namespace noether::alignment
