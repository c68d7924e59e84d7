// The largest eigenvalues of the loss' Hessian: how large a step gradient descent can stand at a checkpoint.
#pragma once

#include "architecture/checkpoint.h"
#include "base/reporter.h"
#include "evaluation/biases.h"
#include "evaluation/lanczos.h"
#include "regression/linear_transformer.h"
#include "text/token_file.h"

#include <cstdint>
#include <vector>

namespace noether::evaluation {

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

/// Of a linear transformer's loss over all prompts, in float64; `tokens` is their count. Prompts: of the model's
/// dimension.
Sharpness sharpness(const regression::LinearTransformer& model, const regression::Regression& prompts,
                    const Lanczos& options);

} // namespace noether::evaluation
