// One side of a matrix under SOAP: the factor that gradients are summed up in, and the basis in which they are seen.
//
// Both lie in one array [n + 1, n]. A symmetric matrix is its upper triangle, and an orthogonal one is, up to the signs
// of its columns, which nothing here depends on, a product of Householder reflections, whose vectors fit below the
// diagonal: half of what two squares would take. The last row holds the reflections' scales, as LAPACK's geqrf makes
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace noether::optimizers {

/// factor <- factor + weight (X X^T - factor). side: [n + 1, n], X: [n, r] of any strides.
void add_to_factor(const at::Tensor& side, const at::Tensor& X, double weight);
/// The factor, all of it: [n, n].
at::Tensor factor_of(const at::Tensor& side);
/// The basis becomes the orthogonal part of A's QR decomposition. A: [n, n].
void set_basis(const at::Tensor& side, const at::Tensor& A);

/// A symmetric matrix's eigenvectors as columns.
at::Tensor decomposed(const at::Tensor& A);
/// Eigenvectors of a factor, the largest value's first. A float32 factor is decomposed in float32, by `in_float32`;
/// where that fails or gives numbers that are not finite, in float64, which `fallbacks` counts.
at::Tensor eigenvectors(const at::Tensor& factor, int& fallbacks,
                        at::Tensor (*in_float32)(const at::Tensor&) = decomposed);

/// On which side of a matrix a basis stands.
enum class Hand { left, right };

/// The basis Q of a side, made ready for the products of one step.
class Basis {
public:
  /// in_float32: Q is put together in float32, whatever the side's type: as the published program does it, whose
  /// numbers depend on it in the seventh digit.
  explicit Basis(const at::Tensor& side, bool in_float32 = false, std::int64_t formed_up_to = 64);
  void forth(at::Tensor& X, Hand hand) const; ///< X <- Q^T X, or X <- X Q. X: dense, and nobody else's
  void back(at::Tensor& X, Hand hand) const;  ///< X <- Q X, or X <- X Q^T
  at::Tensor formed() const;                  ///< Q: [n, n]

private:
  /// Reflections begin, .., begin + width - 1 together: I - V T V^T on rows or columns from `begin` on.
  struct Panel {
    std::int64_t begin;
    at::Tensor V, T;
  };
  static void reflect(const Panel& panel, const at::Tensor& part, Hand hand, bool forth);
  void turn(const at::Tensor& X, Hand hand, bool forth) const;

  std::int64_t size_;
  at::Tensor Q_;              ///< short sides: cheaper as it is
  std::vector<Panel> panels_; ///< long ones
};

} // namespace noether::optimizers
