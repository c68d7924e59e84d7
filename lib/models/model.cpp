// The forward pass of the whole family: pre-norm blocks of attention and MLP. Which of their parts a model has is its
// configuration's matter; the parts are here once. Source: GPT-2 and Llama as published; symmetry-breaking biases:
// arXiv 2601.22257, section 2.
#include "models/model.h"

#include "base/error.h"
#include "base/random.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/prelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <map>
#include <tuple>

namespace noether::models {
namespace {

using architecture::Activation;
using architecture::Config;

at::Tensor norm(const Config& config, const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias) {
  if (config.norm == architecture::Norm::rms) return at::rms_norm(x, {x.size(-1)}, gain, config.norm_epsilon);
  return at::layer_norm(x, {x.size(-1)}, gain, bias, config.norm_epsilon);
}

at::Tensor activate(const Config& config, const at::Tensor& x, const at::Tensor& slope) {
  switch (config.activation) {
  case Activation::gelu:
    return at::gelu(x);
  case Activation::gelu_tanh:
    return at::gelu(x, "tanh");
  case Activation::relu:
    return at::relu(x);
  case Activation::silu:
    return at::silu(x);
  case Activation::prelu:
    break;
  }
  return at::prelu(x.view({-1, x.size(-1)}), slope).view(x.sizes()); // a slope a feature: prelu's second dimension
}

/// Cosines and sines of the rotations of positions [begin, begin + count): [count, rotated / 2] each.
struct Rotation {
  at::Tensor cosine, sine;
};
Rotation rotation(const Config& config, std::int64_t begin, std::int64_t count, const at::TensorOptions& options) {
  std::vector<double> frequencies = config.rope_frequencies();
  const at::Tensor angle = // in double: far positions keep their angle
      at::outer(at::arange(begin, begin + count, options.dtype(at::kDouble)),
                at::from_blob(frequencies.data(), {std::ssize(frequencies)}, at::kDouble));
  return {angle.cos().to(options), angle.sin().to(options)};
}

/// Rotates the first `rotated` components of each head, pairs (i, i + rotated / 2). x: [B, T, heads, head_width].
at::Tensor rotate(const at::Tensor& x, std::int64_t rotated, const Rotation& by) {
  const at::Tensor first = x.slice(-1, 0, rotated / 2), second = x.slice(-1, rotated / 2, rotated);
  const at::Tensor cosine = by.cosine.unsqueeze(1), sine = by.sine.unsqueeze(1);
  return at::cat({first * cosine - second * sine, second * cosine + first * sine, x.slice(-1, rotated)}, -1);
}

at::Tensor attention(const Model& model, std::int64_t index, const at::Tensor& x, const Rotation& by,
                     const StepBiases& biases, Cache* cache, const AttentionObserver* observe) {
  const Config& c = model.config;
  const Layer& layer = model.layers[static_cast<std::size_t>(index)];
  const std::int64_t B = x.size(0), T = x.size(1);
  const at::Tensor qkv = linear(x, layer.W_QKV, layer.b_QKV, model.precision);
  const std::int64_t q_end = c.heads * c.head_width, k_end = q_end + c.kv_heads * c.head_width;
  at::Tensor q = qkv.slice(-1, 0, q_end).view({B, T, c.heads, c.head_width});
  at::Tensor k = qkv.slice(-1, q_end, k_end).view({B, T, c.kv_heads, c.head_width});
  at::Tensor v = qkv.slice(-1, k_end).view({B, T, c.kv_heads, c.head_width});
  if (c.qk_norm) { // arXiv 2302.05442, section 2, there with a layer norm
    q = at::rms_norm(q, {c.head_width}, layer.q_norm_gain, c.norm_epsilon);
    k = at::rms_norm(k, {c.head_width}, layer.k_norm_gain, c.norm_epsilon);
  }
  const at::Tensor plain_q = q, plain_k = k;
  if (c.rotated() > 0) {
    q = rotate(q, c.rotated(), by);
    k = rotate(k, c.rotated(), by);
  }
  const auto at_layer = static_cast<std::size_t>(index);
  // After the rotation. One vector for all heads, or one each: both shapes broadcast.
  for (const auto& [projected, drawn, learned] :
       {std::tuple{&q, &biases.q[at_layer], &layer.break_Q}, std::tuple{&k, &biases.k[at_layer], &layer.break_K},
        std::tuple{&v, &biases.v[at_layer], &layer.break_V}})
    if (learned->defined() || drawn->defined()) *projected = *projected + (learned->defined() ? *learned : *drawn);
  q = q.transpose(1, 2);
  k = k.transpose(1, 2);
  v = v.transpose(1, 2);
  bool causal = true;
  std::optional<at::Tensor> mask;
  if (cache != nullptr) {
    const std::int64_t begin = cache->length, end = begin + T;
    cache->keys[at_layer].slice(2, begin, end).copy_(k);
    cache->values[at_layer].slice(2, begin, end).copy_(v);
    k = cache->keys[at_layer].slice(2, 0, end);
    v = cache->values[at_layer].slice(2, 0, end);
    causal = begin == 0; // the mask counts from the first query, which is then not the first key
    if (begin > 0 && T > 1)
      mask = at::arange(end, x.options().dtype(at::kLong)).unsqueeze(0) <=
             at::arange(begin, end, x.options().dtype(at::kLong)).unsqueeze(1);
  }
  if (c.kv_heads != c.heads) {
    k = k.repeat_interleave(c.heads / c.kv_heads, 1);
    v = v.repeat_interleave(c.heads / c.kv_heads, 1);
  }
  if (observe != nullptr) (*observe)(index, {plain_q, plain_k, q, k});
  const at::Tensor y = model.twice_differentiable
                           ? std::get<0>(at::_scaled_dot_product_attention_math(q, k, v, mask, 0.0, causal && T > 1))
                           : at::scaled_dot_product_attention(q, k, v, mask, 0.0, causal && T > 1);
  return linear(y.transpose(1, 2).reshape({B, T, q_end}), layer.W_O, layer.b_O, model.precision);
}

at::Tensor mlp(const Model& model, const Layer& layer, const at::Tensor& x) {
  const Config& c = model.config;
  at::Tensor h = linear(x, layer.W_up, layer.b_up, model.precision);
  if (c.gated_mlp)
    h = activate(c, h.slice(-1, 0, c.hidden), layer.slope) * h.slice(-1, c.hidden);
  else
    h = activate(c, h, layer.slope);
  return linear(h, layer.W_down, layer.b_down, model.precision);
}

/// One expert's features. rows: [n, width].
at::Tensor expert(const Model& model, const Layer& layer, std::int64_t index, const at::Tensor& rows) {
  const auto part = [&](const at::Tensor& all, std::int64_t which) {
    return all.defined() ? all[which][index] : at::Tensor();
  };
  const auto own = [&](const at::Tensor& all) { return all.defined() ? all[index] : at::Tensor(); };
  at::Tensor h =
      activate(model.config, linear(rows, part(layer.W_up, 0), part(layer.b_up, 0), model.precision), own(layer.slope));
  if (model.config.gated_mlp) h = h * linear(rows, part(layer.W_up, 1), part(layer.b_up, 1), model.precision);
  return linear(h, layer.W_down[index], own(layer.b_down), model.precision);
}

/// Each row's features from the experts that the router finds likeliest, weighted by their probabilities: of several
/// experts scaled to a sum of 1 (arXiv 2401.04088, section 2.1); of one as they are, or the router would learn nothing
/// (arXiv 2101.03961, equation 2). Adds to `balance` experts * sum_i f_i P_i, f_i being the share of rows
/// that went to expert i and P_i its mean probability: 1 when all are equally busy (arXiv 2101.03961, equations 4 to
/// 6).
at::Tensor mixture(const Model& model, const Layer& layer, const at::Tensor& x, at::Tensor* balance) {
  const Config& c = model.config;
  const at::Tensor rows = x.reshape({-1, c.width});
  const at::Tensor probabilities = at::softmax(linear(rows, layer.W_router, {}, Precision::f32), -1);
  const auto [chosen, experts] = at::topk(probabilities, c.experts_per_token);
  const at::Tensor weights = c.experts_per_token == 1 ? chosen : chosen / chosen.sum(-1, true);
  at::Tensor y = at::zeros_like(rows);
  std::vector<at::Tensor> busy;
  for (std::int64_t i = 0; i < c.experts; ++i) {
    const std::vector<at::Tensor> where = at::where(experts.eq(i)); // rows, and which of their choices it is
    busy.push_back(at::scalar_tensor(where[0].size(0), rows.options().requires_grad(false)));
    if (where[0].size(0) == 0) continue;
    const at::Tensor features = expert(model, layer, i, rows.index_select(0, where[0]));
    y = y.index_add(0, where[0],
                    features *
                        weights.flatten().index_select(0, where[0] * c.experts_per_token + where[1]).unsqueeze(1));
  }
  if (balance != nullptr)
    *balance = *balance + (at::stack(busy) * probabilities.mean(0)).sum() *
                              (static_cast<double>(c.experts) / static_cast<double>(experts.numel()));
  return y.view(x.sizes());
}

/// value(distribution, layer, head, component, index); index tells the draws of a layer apart.
template <class Value> StepBiases biases_of(const Config& config, const Value& value) {
  StepBiases biases = no_biases(config);
  if (config.learned_bias) return biases;
  std::uint64_t first = 0;
  const auto fill = [&](std::vector<at::Tensor>& out, architecture::Break projection,
                        const architecture::BiasDistribution& distribution) {
    const std::int64_t heads = config.bias_heads(projection), width = config.head_width;
    for (std::int64_t layer = 0; config.breaks(projection) && layer < config.layers; ++layer) {
      const at::Tensor vectors = at::empty({heads, width}, at::kFloat);
      for (std::int64_t i = 0; i < heads * width; ++i)
        vectors.data_ptr<float>()[i] =
            static_cast<float>(value(distribution, layer, i / width, i % width, first + static_cast<std::uint64_t>(i)));
      out[static_cast<std::size_t>(layer)] = vectors;
    }
    // Counted whether it is there or not, so that one kind's draws do not depend on the others.
    first += static_cast<std::uint64_t>(heads * width);
  };
  fill(biases.q, architecture::Break::q, config.q_bias);
  fill(biases.v, architecture::Break::v, config.v_bias);
  fill(biases.k, architecture::Break::k, config.k_bias);
  return biases;
}

/// A component of one of the layer's fixed directions.
double of_direction(const Config& config, std::uint64_t direction, const architecture::BiasDistribution& distribution,
                    std::int64_t layer, std::int64_t head, std::int64_t component, std::uint64_t index) {
  const Random random(config.bias_seed, Purpose::kDirection, direction, static_cast<std::uint32_t>(layer));
  return distribution.mean(component, config.head_width, head) +
         distribution.deviation(component, config.head_width, head) * random.normal(index);
}

/// head(rows, targets) and the experts' balance.
template <class Head>
at::Tensor loss_of(const Model& model, const at::Tensor& tokens, const at::Tensor& targets, const StepBiases& biases,
                   double scale, const Head& head) {
  at::Tensor balance;
  const bool balanced = model.config.experts > 0 && model.config.balance_loss > 0;
  const at::Tensor h = hidden(model, tokens, biases, nullptr, balanced ? &balance : nullptr);
  const at::Tensor cross_entropy = head(h.reshape({-1, h.size(-1)}), targets.reshape({-1}));
  if (!balanced) return cross_entropy;
  const double share = scale * static_cast<double>(targets.ge(0).sum().item<std::int64_t>());
  return cross_entropy + balance * (model.config.balance_loss * share);
}

} // namespace

Model bind(const Config& config, architecture::Arena& parameters, architecture::Arena* gradients) {
  const std::vector<architecture::Parameter> layout = architecture::parameters(config);
  std::map<std::string, const architecture::Parameter*> by_name;
  for (const architecture::Parameter& parameter : layout) by_name[parameter.name] = &parameter;

  Model model;
  model.config = config;
  /// The `names` that the configuration has, which are neighbours in the arena, as one tensor of `shape`.
  const auto view = [&](std::initializer_list<std::string> names, std::vector<std::int64_t> shape) -> at::Tensor {
    const auto first = by_name.find(*names.begin());
    if (first == by_name.end()) return {};
    const std::int64_t offset = first->second->offset;
    at::Tensor tensor = at::from_blob(parameters.data() + offset, shape, at::kFloat);
    if (gradients != nullptr) {
      tensor.set_requires_grad(true);
      tensor.mutable_grad() = at::from_blob(gradients->data() + offset, shape, at::kFloat);
    }
    model.leaves.push_back({tensor, offset});
    return tensor;
  };

  const std::int64_t W = config.width, H = config.hidden, Q = config.heads * config.head_width,
                     QKV = Q + 2 * config.kv_heads * config.head_width, gates = config.gated_mlp ? 2 : 1;
  using Shape = std::vector<std::int64_t>;
  const auto each = [&](Shape shape) { // of every expert, where there are any
    if (config.experts > 0) shape.insert(shape.begin(), config.experts);
    return shape;
  };
  const auto up = [&](Shape shape) { // the gate's part and the other
    if (config.experts == 0) return shape[0] *= gates, shape;
    shape = each(shape);
    shape.insert(shape.begin(), gates);
    return shape;
  };
  model.tokens = view({"embedding/tokens"}, {config.vocab_size, W});
  model.positions = view({"embedding/positions"}, {config.context, W});
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string a = fmt::format("layers/{}/attention/", i), m = fmt::format("layers/{}/mlp/", i);
    Layer layer;
    layer.attention_norm_gain = view({a + "norm_gain"}, {W});
    layer.attention_norm_bias = view({a + "norm_bias"}, {W});
    layer.W_QKV = view({a + "W_Q", a + "W_K", a + "W_V"}, {QKV, W});
    layer.b_QKV = view({a + "b_Q", a + "b_K", a + "b_V"}, {QKV});
    layer.q_norm_gain = view({a + "q_norm_gain"}, {config.head_width});
    layer.k_norm_gain = view({a + "k_norm_gain"}, {config.head_width});
    layer.break_Q = view({a + "break_Q"}, {config.bias_heads(architecture::Break::q), config.head_width});
    layer.break_K = view({a + "break_K"}, {config.bias_heads(architecture::Break::k), config.head_width});
    layer.break_V = view({a + "break_V"}, {config.bias_heads(architecture::Break::v), config.head_width});
    layer.W_O = view({a + "W_O"}, {W, Q});
    layer.b_O = view({a + "b_O"}, {W});
    layer.mlp_norm_gain = view({m + "norm_gain"}, {W});
    layer.mlp_norm_bias = view({m + "norm_bias"}, {W});
    layer.W_router = view({m + "W_router"}, {config.experts, W});
    layer.W_up = config.gated_mlp ? view({m + "W_gate", m + "W_up"}, up({H, W})) : view({m + "W_up"}, up({H, W}));
    layer.b_up = config.gated_mlp ? view({m + "b_gate", m + "b_up"}, up({H})) : view({m + "b_up"}, up({H}));
    layer.slope = view({m + "slope"}, each({H}));
    layer.W_down = view({m + "W_down"}, each({W, H}));
    layer.b_down = view({m + "b_down"}, each({W}));
    model.layers.push_back(layer);
  }
  model.head_norm_gain = view({"head/norm_gain"}, {W});
  model.head_norm_bias = view({"head/norm_bias"}, {W});
  model.head = config.tied_head ? model.tokens : view({"head/W_U"}, {config.vocab_size, W});
  return model;
}

StepBiases no_biases(const Config& config) {
  const std::vector<at::Tensor> none(static_cast<std::size_t>(config.layers));
  return {none, none, none};
}

StepBiases mean_biases(const Config& config) {
  return biases_of(config, [&](const auto& distribution, auto layer, auto head, auto component, auto index) {
    if (config.bias_directions == 0) return distribution.mean(component, config.head_width, head);
    double sum = 0;
    for (std::int64_t i = 0; i < config.bias_directions; ++i)
      sum += of_direction(config, static_cast<std::uint64_t>(i), distribution, layer, head, component, index);
    return sum / static_cast<double>(config.bias_directions);
  });
}

StepBiases sampled_biases(const Config& config, std::uint64_t seed, std::uint64_t step) {
  return biases_of(config, [&](const auto& distribution, auto layer, auto head, auto component, auto index) {
    const Random random(seed, Purpose::kBias, step, static_cast<std::uint32_t>(layer));
    if (config.bias_directions > 0)
      return of_direction(config, random.below(0, static_cast<std::uint64_t>(config.bias_directions)), distribution,
                          layer, head, component, index);
    return distribution.mean(component, config.head_width, head) +
           distribution.deviation(component, config.head_width, head) * random.normal(index);
  });
}

Cache make_cache(const Config& config, std::int64_t batch) {
  Cache cache;
  for (std::int64_t i = 0; i < config.layers; ++i)
    for (auto* list : {&cache.keys, &cache.values})
      list->push_back(at::zeros({batch, config.kv_heads, config.context, config.head_width}, at::kFloat));
  return cache;
}

at::Tensor attention_norm(const Model& model, std::int64_t layer, const at::Tensor& x) {
  const Layer& of = model.layers[static_cast<std::size_t>(layer)];
  return norm(model.config, x, of.attention_norm_gain, of.attention_norm_bias);
}

at::Tensor rotate_to_positions(const Config& config, const at::Tensor& x, std::int64_t begin) {
  if (config.rotated() == 0) return x;
  return rotate(x.unsqueeze(0), config.rotated(), rotation(config, begin, x.size(0), x.options())).squeeze(0);
}

at::Tensor hidden(const Model& model, const at::Tensor& tokens, const StepBiases& biases, Cache* cache,
                  at::Tensor* balance, const AttentionObserver* observe) {
  const Config& c = model.config;
  if (balance != nullptr) *balance = at::zeros({}, model.tokens.options().requires_grad(false));
  const std::int64_t begin = cache != nullptr ? cache->length : 0, T = tokens.size(1);
  if (begin + T > c.context) throw Error("{} tokens are more than the model's context of {}", begin + T, c.context);
  at::Tensor x = at::embedding(model.tokens, tokens);
  if (model.positions.defined()) x = x + model.positions.slice(0, begin, begin + T);
  const Rotation by = c.rotated() > 0 ? rotation(c, begin, T, x.options().requires_grad(false)) : Rotation{};
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Layer& layer = model.layers[static_cast<std::size_t>(i)];
    x = x + attention(model, i, attention_norm(model, i, x), by, biases, cache, observe);
    const at::Tensor normed = norm(c, x, layer.mlp_norm_gain, layer.mlp_norm_bias);
    x = x + (c.experts > 0 ? mixture(model, layer, normed, balance) : mlp(model, layer, normed));
  }
  if (balance != nullptr) *balance = *balance / static_cast<double>(c.layers);
  if (cache != nullptr) cache->length += T;
  return norm(c, x, model.head_norm_gain, model.head_norm_bias);
}

at::Tensor logits(const Model& model, const at::Tensor& hidden_states) {
  return linear(hidden_states, model.head, {}, model.precision);
}

at::Tensor loss(const Model& model, const at::Tensor& tokens, const at::Tensor& targets, const StepBiases& biases,
                double scale) {
  return loss_of(model, tokens, targets, biases, scale, [&](const at::Tensor& h, const at::Tensor& flat) {
    return head_cross_entropy(h, model.head, flat, scale, model.precision);
  });
}

at::Tensor smooth_loss(const Model& model, const at::Tensor& tokens, const at::Tensor& targets,
                       const StepBiases& biases, double scale) {
  return loss_of(model, tokens, targets, biases, scale, [&](const at::Tensor& h, const at::Tensor& flat) {
    return at::cross_entropy_loss(logits(model, h), flat, {}, at::Reduction::Sum, -1) * scale;
  });
}

at::Tensor token_losses(const Model& model, const at::Tensor& tokens, const at::Tensor& targets,
                        const StepBiases& biases) {
  const at::NoGradGuard guard;
  const at::Tensor h = hidden(model, tokens, biases);
  return head_token_losses(h.reshape({-1, h.size(-1)}), model.head, targets.reshape({-1}), model.precision)
      .view(targets.sizes());
}

} // namespace noether::models
