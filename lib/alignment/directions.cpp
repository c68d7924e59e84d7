#include "alignment/directions.h"

#include "base/error.h"
#include "base/number.h"
#include "text/unicode.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <cerrno>
#include <fstream>

namespace noether::alignment {

at::Tensor bias_directions(const architecture::Checkpoint& checkpoint, const models::Model& model) {
  const architecture::Config& c = checkpoint.config;
  if (!c.breaks_q())
    throw Error("{}: has no symmetry-breaking query bias; give --direction mean-query, or a file of directions",
                checkpoint.name);
  const models::StepBiases biases = models::mean_biases(c);
  std::vector<at::Tensor> layers;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const at::Tensor& vectors = c.learned_bias ? model.layers[i].break_Q : biases.q[i];
    layers.push_back(vectors.expand({c.heads, c.head_width}));
  }
  return at::stack(layers);
}

at::Tensor read_directions(const std::string& path, const architecture::Config& config) {
  std::ifstream file(path);
  if (!file) throw Error("{}: {}", path, system_reason(errno));
  std::vector<float> values;
  for (std::string word; file >> word;) {
    const auto value = parse_real(word);
    if (!value) throw Error("{}: expected numbers, found {}", path, text::printable(word));
    values.push_back(static_cast<float>(*value));
  }
  const std::int64_t L = config.layers, H = config.heads, d = config.head_width, n = std::ssize(values);
  if (n != d && n != H * d && n != L * H * d)
    throw Error("{}: expected {} numbers (a direction for all heads), {} x {} (one a head) or {} x {} x {} (one a "
                "head and layer), found {}",
                path, d, H, d, L, H, d, n);
  const at::Tensor all = at::from_blob(values.data(), {n}, at::kFloat);
  return (n == d       ? all.view({1, 1, d}).expand({L, H, d})
          : n == H * d ? all.view({1, H, d}).expand({L, H, d})
                       : all.view({L, H, d}))
      .clone(at::MemoryFormat::Contiguous);
}

void check_directions(const at::Tensor& directions, const std::string& name) {
  const at::Tensor lengths = directions.square().sum(-1).contiguous();
  for (std::int64_t i = 0; i < lengths.numel(); ++i)
    if (!(lengths.const_data_ptr<float>()[i] > 0))
      throw Error("{}: the direction of layer {}, head {} is zero (a bias without a mean prefers nothing)", name,
                  i / directions.size(1), i % directions.size(1));
}

void for_each_window(const models::Model& model, const text::TokenFile& tokens, std::int64_t limit,
                     const std::function<void(const at::Tensor& ids)>& use) {
  const auto all = static_cast<std::int64_t>(tokens.size());
  const std::int64_t end = limit > 0 ? std::min(limit, all) : all;
  if (end < 1) throw Error("{}: no tokens in it", tokens.name());
  std::vector<std::int64_t> ids;
  for (std::int64_t begin = 0; begin < end; begin += model.config.context) {
    ids.resize(static_cast<std::size_t>(std::min(model.config.context, end - begin)));
    tokens.read(static_cast<std::uint64_t>(begin), ids.size(), ids.data());
    for (const std::int64_t id : ids)
      if (id >= model.config.vocab_size)
        throw Error("{}: token {} is beyond the model's vocabulary of {}", tokens.name(), id, model.config.vocab_size);
    use(at::from_blob(ids.data(), {1, std::ssize(ids)}, at::kLong));
  }
}

at::Tensor mean_queries(const models::Model& model, const text::TokenFile& tokens, std::int64_t limit) {
  const c10::InferenceMode guard;
  const architecture::Config& c = model.config;
  at::Tensor sums = at::zeros({c.layers, c.heads, c.head_width}, at::kDouble);
  std::int64_t count = 0;
  const models::StepBiases biases = models::mean_biases(c);
  const models::AttentionObserver add = [&](std::int64_t layer, const models::AttentionInputs& inputs) {
    sums[layer].add_(inputs.q.sum(at::IntArrayRef{0, 1}, false, at::kDouble));
  };
  for_each_window(model, tokens, limit, [&](const at::Tensor& ids) {
    models::hidden(model, ids, biases, nullptr, nullptr, &add);
    count += ids.size(1);
  });
  return sums.div_(static_cast<double>(count)).to(at::kFloat);
}

} // namespace noether::alignment
