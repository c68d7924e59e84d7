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
__attribute__((always_inline)) inline double squares_in_runs(const float* x, std::int64_t n) {
  Doubles total{};
  const std::int64_t whole = n / (kFloats * kRun) * (kFloats * kRun);
  for (std::int64_t begin = 0; begin < whole; begin += kFloats * kRun) {
    Floats run{}, v;
    for (std::int64_t i = begin; i < begin + kFloats * kRun; i += kFloats) {
      std::memcpy(&v, x + i, sizeof v);
      run += v * v;
    }
    total += __builtin_convertvector(run, Doubles);
  }
  return sum_of(total) + squares(x + whole, n - whole);
}
NOETHER_CLONES double sum_squares(const float* x, std::int64_t n) {
  const double sum = squares_in_runs(x, n);
  // Squares of numbers below 1e-19 or above 1e19 leave float's range.
  return sum > 1e-25 && sum < 1e30 ? sum : squares(x, n);
}
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
