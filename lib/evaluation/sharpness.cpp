#include "evaluation/sharpness.h"

#include "base/error.h"
#include "models/model.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

namespace noether::evaluation {

Sharpness sharpness(architecture::Checkpoint& checkpoint, const text::TokenFile& tokens,
                    const SharpnessOptions& options, Reporter& reporter) try {
  const architecture::Config& config = checkpoint.config;
  if (checkpoint.tokenizer && text::digest(*checkpoint.tokenizer) != tokens.tokenizer_digest())
    throw Error("{}: tokens of another tokenizer than that of {}", tokens.name(), checkpoint.name);
  if (tokens.tokenizer().vocab_size() > config.vocab_size)
    throw Error("{}: a vocabulary of {} is beyond that of {}, which has {}", tokens.name(),
                tokens.tokenizer().vocab_size(), checkpoint.name, config.vocab_size);
  const std::int64_t context = config.context, last = static_cast<std::int64_t>(tokens.size()) - context - 1;
  if (last < 0)
    throw Error("{}: {} tokens are too few for a window of {} and the token after it", tokens.name(), tokens.size(),
                context);
  const std::int64_t windows = std::min(options.windows, last + 1);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(windows * (context + 1)));
  for (std::int64_t i = 0; i < windows; ++i)
    tokens.read(static_cast<std::uint64_t>(windows == 1 ? 0 : last * i / (windows - 1)),
                static_cast<std::uint64_t>(context + 1), ids.data() + i * (context + 1));
  const at::Tensor rows = at::from_blob(ids.data(), {windows, context + 1}, at::kLong);

  at::set_num_threads(options.threads);
  architecture::Arena products(checkpoint.parameters.size());
  models::Model model = models::bind(config, checkpoint.parameters, &products);
  model.twice_differentiable = true;
  const models::StepBiases biases = step_biases(config, options.biases, 0, 0);
  std::vector<at::Tensor> leaves;
  for (const models::Model::Leaf& leaf : model.leaves) leaves.push_back(leaf.tensor);

  Sharpness result;
  result.tokens = windows * context;
  const double mean = 1.0 / static_cast<double>(result.tokens);
  const auto times = [&](std::span<const float> v, std::span<float> out) {
    std::fill(products.span().begin(), products.span().end(), 0.0F);
    result.loss = 0;
    for (std::int64_t begin = 0; begin < windows; begin += options.batch) {
      const at::Tensor batch = rows.slice(0, begin, std::min(begin + options.batch, windows));
      const at::Tensor loss = models::smooth_loss(model, batch.slice(1, 0, context), batch.slice(1, 1), biases, mean);
      result.loss += loss.item<double>();
      const std::vector<at::Tensor> gradient =
          torch::autograd::grad({loss}, leaves, {}, true, /*create_graph=*/true, /*allow_unused=*/true);
      at::Tensor along; // the derivative along v, whose gradient is H v
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        if (!gradient[i].defined() || !gradient[i].requires_grad()) continue;
        const at::Tensor direction =
            at::from_blob(const_cast<float*>(v.data()) + model.leaves[i].offset, leaves[i].sizes(), at::kFloat);
        const at::Tensor part = (gradient[i] * direction).sum();
        along = along.defined() ? along + part : part;
      }
      along.backward(); // adds to `products`
    }
    std::copy(products.span().begin(), products.span().end(), out.begin());
  };
  result.eigenvalues = largest_eigenvalues<float>(
      checkpoint.parameters.size(), options.lanczos, times, [&](std::int64_t done, double residual) {
        if (reporter.progress_due())
          reporter.progress(fmt::format("{}  {} of at most {} products  relative residual {:.2g}", checkpoint.name,
                                        done, options.lanczos.iterations, residual));
      });
  if (!std::isfinite(result.loss)) throw Error("{}: its loss is not finite", checkpoint.name);
  return result;
} catch (const c10::Error& error) {
  throw Error("{}: {}", checkpoint.name, error.what_without_backtrace());
}

Sharpness sharpness(const regression::LinearTransformer& model, const regression::Regression& prompts,
                    const Lanczos& options) {
  regression::LinearTransformer at = model, gradient;
  Sharpness result;
  result.tokens = prompts.count();
  result.loss = prompts.loss(model, {}, gradient);
  const std::size_t values = model.value.size(), n = values + model.key_query.size();
  const auto numbers = [&](regression::LinearTransformer& of, std::size_t i) -> double& {
    return i < values ? of.value[i] : of.key_query[i - values];
  };
  // The gradient is a polynomial of degree 3, whose derivative a difference over five points gives exactly; steps as
  // long as the parameters leave no rounding beyond theirs.
  double length = 0;
  for (std::size_t i = 0; i < n; ++i) length += numbers(at, i) * numbers(at, i);
  const double h = length > 0 ? std::sqrt(length) : 1;
  const auto times = [&](std::span<const double> v, std::span<double> out) {
    std::fill(out.begin(), out.end(), 0.0);
    for (const auto& [steps, weight] : {std::pair{-2.0, 1.0}, {-1.0, -8.0}, {1.0, 8.0}, {2.0, -1.0}}) {
      at = model;
      for (std::size_t i = 0; i < n; ++i) numbers(at, i) += steps * h * v[i];
      prompts.loss(at, {}, gradient);
      for (std::size_t i = 0; i < n; ++i) out[i] += weight / (12 * h) * numbers(gradient, i);
    }
  };
  result.eigenvalues =
      largest_eigenvalues<double>(static_cast<std::int64_t>(n), options, times, [](std::int64_t, double) {});
  return result;
}

} // namespace noether::evaluation
