// A side's array: that a factor and a basis share it without touching each other, and that reflections in blocks are
// the matrix that LAPACK puts together.
#include "optimizers/basis.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <gtest/gtest.h>

namespace noether::optimizers {
namespace {

double largest(const at::Tensor& A) { return A.abs().max().item<double>(); }

TEST(Basis, OfBlocksIsTheMatrixThatTheyMake) {
  at::manual_seed(1);
  for (const std::int64_t n : {1, 2, 127, 128, 129, 300}) {
    const at::Tensor side = at::zeros({n + 1, n}), A = at::randn({n, n}), X = at::randn({n, 7});
    set_basis(side, A);
    const Basis blocks(side, false, 0), formed(side, false, n);
    const at::Tensor Q = formed.formed();
    // Float32 products of a few hundred numbers below 1.
    EXPECT_LT(largest(at::mm(Q.t(), Q) - at::eye(n)), 2e-5) << n;
    EXPECT_LT(largest(at::mm(Q.t(), A).tril(-1)), 2e-4) << n; // Q^T A is the triangle R
    EXPECT_LT(largest(blocks.formed() - Q), 2e-5) << n;
    for (const Basis* basis : {&blocks, &formed}) {
      const auto forth = [&](const at::Tensor& Y, Hand hand) {
        at::Tensor turned = Y.clone(at::MemoryFormat::Contiguous);
        basis->forth(turned, hand);
        return turned;
      };
      const auto back = [&](const at::Tensor& Y, Hand hand) {
        at::Tensor turned = Y.clone(at::MemoryFormat::Contiguous);
        basis->back(turned, hand);
        return turned;
      };
      EXPECT_LT(largest(forth(X, Hand::left) - at::mm(Q.t(), X)), 1e-4) << n;
      EXPECT_LT(largest(back(X, Hand::left) - at::mm(Q, X)), 1e-4) << n;
      EXPECT_LT(largest(forth(X.t(), Hand::right) - at::mm(X.t(), Q)), 1e-4) << n;
      EXPECT_LT(largest(back(X.t(), Hand::right) - at::mm(X.t(), Q.t())), 1e-4) << n;
    }
  }
}

TEST(Basis, LeavesOutReflectionsOfScaleZero) {
  const std::int64_t n = 200;
  const at::Tensor side = at::zeros({n + 1, n}), X = at::randn({n, 3});
  set_basis(side, at::eye(n)); // columns that need no reflection
  at::Tensor turned = X.clone();
  Basis(side, false, 0).forth(turned, Hand::left);
  EXPECT_LT(largest(turned.abs() - X.abs()), 1e-6);
}

TEST(Basis, AndFactorShareAnArray) {
  at::manual_seed(2);
  for (const std::int64_t n : {5, 800, 1000}) { // one block of rows, and two
    const at::Tensor side = at::zeros({n + 1, n}), X = at::randn({n, 20}), Y = at::randn({n, 30});
    add_to_factor(side, X, 0.05);
    set_basis(side, at::randn({n, n}));
    const at::Tensor Q = Basis(side).formed();
    add_to_factor(side, Y, 0.05);
    const at::Tensor expected = 0.95 * 0.05 * at::mm(X, X.t()) + 0.05 * at::mm(Y, Y.t());
    EXPECT_LT(largest(factor_of(side) - expected), 1e-5) << n;
    EXPECT_TRUE(factor_of(side).equal(factor_of(side).t()));
    EXPECT_TRUE(Basis(side).formed().equal(Q)) << n;
  }
}

TEST(Eigenvectors, AreOrderedAndFallBackToFloat64) {
  at::manual_seed(3);
  const at::Tensor Y = at::randn({40, 50}), A = at::mm(Y, Y.t());
  int fallbacks = 0;
  const at::Tensor values = at::mm(at::mm(eigenvectors(A, fallbacks).t(), A), eigenvectors(A, fallbacks)).diagonal();
  EXPECT_TRUE((values.slice(0, 1) <= values.slice(0, 0, 39) + 1e-4).all().item<bool>());
  EXPECT_EQ(fallbacks, 0);
  const at::Tensor failed =
      eigenvectors(A, fallbacks, [](const at::Tensor&) -> at::Tensor { TORCH_CHECK(false, "did not converge"); });
  EXPECT_EQ(fallbacks, 1);
  const at::Tensor nothing = eigenvectors(A, fallbacks, [](const at::Tensor& B) -> at::Tensor { return B / 0; });
  EXPECT_EQ(fallbacks, 2);
  for (const at::Tensor& Q : {failed, nothing}) {
    EXPECT_EQ(Q.scalar_type(), at::kFloat);
    EXPECT_LT(largest(at::mm(at::mm(Q.t(), A), Q).triu(1)), 1e-3); // of numbers up to 200
  }
}

} // namespace
} // namespace noether::optimizers
