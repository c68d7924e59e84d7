#include "evaluation/sharpness.h"

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "models/model.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

namespace noether::evaluation {
namespace {

double dot(std::span<const float> a, std::span<const float> b) {
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

void add(std::span<float> a, double factor, std::span<const float> b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(static_cast<double>(a[i]) + factor * static_cast<double>(b[i]));
}

void scale(std::span<float> a, double factor) {
  for (float& x : a) x = static_cast<float>(static_cast<double>(x) * factor);
}

} // namespace

std::vector<Eigenvalue>
largest_eigenvalues(std::int64_t n, const Lanczos& options,
                    const std::function<void(std::span<const float> v, std::span<float> out)>& times,
                    const std::function<void(std::int64_t done, double residual)>& after) {
  std::vector<std::vector<float>> basis(1, std::vector<float>(static_cast<std::size_t>(n)));
  Random(options.seed, Purpose::kLanczos).fill_normal(basis[0].data(), 0, static_cast<std::uint64_t>(n), 0, 1);
  scale(basis[0], 1 / std::sqrt(dot(basis[0], basis[0])));
  std::vector<double> diagonal, below; // of the tridiagonal matrix that H is in the basis
  std::vector<Eigenvalue> found;
  std::vector<float> next(static_cast<std::size_t>(n));
  const std::int64_t iterations = std::min(options.iterations, n);
  for (std::int64_t done = 1; done <= iterations; ++done) {
    times(basis.back(), next);
    diagonal.push_back(dot(basis.back(), next));
    // Twice is enough to make it orthogonal to all before it, which the three-term recurrence alone loses in rounding.
    for (int pass = 0; pass < 2; ++pass)
      for (const std::vector<float>& v : basis) add(next, -dot(v, next), v);
    const double beta = std::sqrt(dot(next, next));

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
    scale(next, 1 / beta);
    basis.push_back(next);
  }
  return found;
}

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
  result.eigenvalues = largest_eigenvalues(
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

} // namespace noether::evaluation
