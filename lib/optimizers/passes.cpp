#include "optimizers/passes.h"

#include <cmath>

namespace noether::optimizers {
namespace {

template <class Real> __attribute__((always_inline)) inline double squares(const Real* x, std::int64_t n) {
  Lanes even{}, odd{}, v; // two chains: one would wait for its own additions
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    widen(x + i, v);
    even += v * v;
    widen(x + i + kLanes, v);
    odd += v * v;
  }
  double rest = 0;
  for (; i < n; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum_of(even + odd) + rest;
}
NOETHER_CLONES double sum_squares(const float* x, std::int64_t n) { return squares(x, n); }
NOETHER_CLONES double sum_squares(const double* x, std::int64_t n) { return squares(x, n); }

} // namespace

template <class Real> double gradient_norm(const Arena<Real>& arena, int threads) {
  const std::vector<Block> blocks = blocks_of(arena.segments);
  std::vector<double> sums(blocks.size());
  for_blocks(blocks, count_of(arena.segments), threads, [&](std::size_t i, const Block& block) {
    sums[i] = sum_squares(arena.grad + block.begin, block.end - block.begin);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

template double gradient_norm(const Arena<float>&, int);
template double gradient_norm(const Arena<double>&, int);

} // namespace noether::optimizers
