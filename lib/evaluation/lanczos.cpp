#include "evaluation/lanczos.h"

#include "base/random.h"
#include "base/threads.h"

#include <ATen/Parallel.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

namespace noether::evaluation {
namespace {

template <class Real> double dot(std::span<const Real> a, std::span<const Real> b) {
  // Blocks in a fixed order, so that the sum does not depend on the number of threads.
  constexpr std::int64_t kBlock = 1 << 16;
  const auto n = static_cast<std::int64_t>(a.size());
  std::vector<double> sums(static_cast<std::size_t>((n + kBlock - 1) / kBlock));
  parallel_for(static_cast<std::int64_t>(sums.size()), at::get_num_threads(), [&](std::int64_t block) {
    double sum = 0;
    for (std::int64_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i)
      sum += static_cast<double>(a[static_cast<std::size_t>(i)]) * static_cast<double>(b[static_cast<std::size_t>(i)]);
    sums[static_cast<std::size_t>(block)] = sum;
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

template <class Real> void add(std::span<Real> a, double factor, std::span<const Real> b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<Real>(static_cast<double>(a[i]) + factor * static_cast<double>(b[i]));
}

template <class Real> void scale(std::span<Real> a, double factor) {
  for (Real& x : a) x = static_cast<Real>(static_cast<double>(x) * factor);
}

} // namespace

template <class Real>
std::vector<Eigenvalue> largest_eigenvalues(std::int64_t n, const Lanczos& options, const Products<Real>& times,
                                            const AfterProduct& after) {
  using Vector = std::vector<Real>;
  std::vector<Vector> basis(1, Vector(static_cast<std::size_t>(n)));
  {
    std::vector<float> drawn(static_cast<std::size_t>(n));
    Random(options.seed, Purpose::kLanczos).fill_normal(drawn.data(), 0, static_cast<std::uint64_t>(n), 0, 1);
    std::copy(drawn.begin(), drawn.end(), basis[0].begin());
  }
  scale<Real>(basis[0], 1 / std::sqrt(dot<Real>(basis[0], basis[0])));
  std::vector<double> diagonal, below; // of the tridiagonal matrix that H is in the basis
  std::vector<Eigenvalue> found;
  Vector next(static_cast<std::size_t>(n));
  const std::int64_t iterations = std::min(options.iterations, n);
  for (std::int64_t done = 1; done <= iterations; ++done) {
    times(basis.back(), next);
    diagonal.push_back(dot<Real>(basis.back(), next));
    // Twice is enough to make it orthogonal to all before it, which the three-term recurrence alone loses in rounding.
    for (int pass = 0; pass < 2; ++pass)
      for (const Vector& v : basis) add<Real>(next, -dot<Real>(v, next), v);
    const double beta = std::sqrt(dot<Real>(next, next));

    const auto m = static_cast<std::int64_t>(diagonal.size());
    at::Tensor matrix = at::zeros({m, m}, at::kDouble);
    for (std::int64_t i = 0; i < m; ++i) {
      matrix[i][i] = diagonal[static_cast<std::size_t>(i)];
      if (i + 1 < m) matrix[i + 1][i] = below[static_cast<std::size_t>(i)]; // the lower triangle is read
    }
    const auto [values, vectors] = at::linalg_eigh(matrix);
    found.clear();
    double worst = 0, largest = 0;
    for (std::int64_t i = 0; i < m; ++i) largest = std::max(largest, std::abs(values[i].item<double>()));
    for (std::int64_t i = m - 1; i >= std::max<std::int64_t>(0, m - options.count); --i) {
      found.push_back({values[i].item<double>(), std::abs(beta * vectors[m - 1][i].item<double>())});
      worst = std::max(worst, found.back().residual / std::max(largest, 1e-300));
    }
    after(done, worst);
    if (static_cast<std::int64_t>(found.size()) == options.count && worst <= options.tolerance) break;
    if (beta <= 1e-7 * largest || done == iterations) break; // an invariant space: there is nothing else to find
    below.push_back(beta);
    scale<Real>(next, 1 / beta);
    basis.push_back(next);
  }
  return found;
}

template std::vector<Eigenvalue> largest_eigenvalues(std::int64_t, const Lanczos&, const Products<float>&,
                                                     const AfterProduct&);
template std::vector<Eigenvalue> largest_eigenvalues(std::int64_t, const Lanczos&, const Products<double>&,
                                                     const AfterProduct&);

} // namespace noether::evaluation
