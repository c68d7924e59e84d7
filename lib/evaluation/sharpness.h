// The largest eigenvalues of the loss' Hessian: how large a step gradient descent can stand at a checkpoint.
#pragma once

#include "architecture/checkpoint.h"
#include "base/reporter.h"
#include "evaluation/biases.h"
#include "text/token_file.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace noether::evaluation {

/// A Ritz value and the norm of H v - value v for its vector of length 1: some eigenvalue is as near as that.
struct Eigenvalue {
  double value = 0, residual = 0;
};

/// The `count` largest eigenvalues of a symmetric matrix of n rows, largest first, by Lanczos' method with full
/// reorthogonalisation. times(v, out) computes out = H v, [n] float32 both. Stops when the residuals are at most
/// `tolerance` times the largest absolute Ritz value, or after `iterations` products (fewer where the space is used
/// up). Keeps a vector of float32 an iteration; sums are in double. after(iterations done, worst relative residual) is
/// called after each. Source: Golub and Van Loan, Matrix Computations, 4th edition, section 10.1.
struct Lanczos {
  std::int64_t count = 1, iterations = 100;
  double tolerance = 1e-3;
  std::uint64_t seed = 0;
};
std::vector<Eigenvalue>
largest_eigenvalues(std::int64_t n, const Lanczos& options,
                    const std::function<void(std::span<const float> v, std::span<float> out)>& times,
                    const std::function<void(std::int64_t done, double residual)>& after);

struct SharpnessOptions {
  Lanczos lanczos;
  std::int64_t windows = 16; ///< of the model's context, evenly spread over the data
  std::int64_t batch = 4;    ///< of those at a time
  Biases biases = Biases::mean;
  int threads = 1;
};
struct Sharpness {
  std::int64_t tokens = 0; ///< whose mean loss it is
  double loss = 0;         ///< nats a token; with experts, their balance included
  std::vector<Eigenvalue> eigenvalues;
};
/// Of the mean loss over the windows, with respect to all parameters. Products with the Hessian are exact (two
/// backward passes). Throws Error for tokens that are too few, or that the model does not take.
Sharpness sharpness(architecture::Checkpoint& checkpoint, const text::TokenFile& tokens,
                    const SharpnessOptions& options, Reporter& reporter);

} // namespace noether::evaluation
