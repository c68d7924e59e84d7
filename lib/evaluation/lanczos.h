// The largest eigenvalues of a symmetric matrix that is known by its products alone.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace noether::evaluation {

/// A Ritz value and the norm of H v - value v for its vector of length 1: some eigenvalue is as near as that.
struct Eigenvalue {
  double value = 0, residual = 0;
};

struct Lanczos {
  std::int64_t count = 1, iterations = 100;
  double tolerance = 1e-3;
  std::uint64_t seed = 0;
};
/// out = H v, [n] both.
template <class Real> using Products = std::function<void(std::span<const Real> v, std::span<Real> out)>;
using AfterProduct = std::function<void(std::int64_t done, double residual)>;

/// The `count` largest eigenvalues of a symmetric matrix of n rows, largest first, by Lanczos' method with full
/// reorthogonalisation, in float or double. Stops when the residuals are at most `tolerance` times the largest absolute
/// Ritz value, or after `iterations` products (fewer where the space is used up). Keeps a vector an iteration; sums are
/// in double. after(iterations done, worst relative residual) is called after each. Source: Golub and Van Loan, Matrix
/// Computations, 4th edition, section 10.1.
template <class Real>
std::vector<Eigenvalue> largest_eigenvalues(std::int64_t n, const Lanczos& options, const Products<Real>& times,
                                            const AfterProduct& after);

} // namespace noether::evaluation
