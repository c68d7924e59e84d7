// A transformer in LibTorch's tensors, which are views into the checkpoint's flat arenas: an optimizer works on the
// arenas, autograd on the views.
#pragma once

#include "architecture/checkpoint.h"
#include "models/linear.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace noether::models {

/// One layer's parameters; what a configuration does not have is undefined. qkv, gate_up are views over neighbours in
/// the arena.
struct Layer {
  at::Tensor attention_norm_gain, attention_norm_bias;
  at::Tensor W_QKV;                     ///< [(heads + 2 kv_heads) head_width, width]
  at::Tensor b_QKV;                     ///< [(heads + 2 kv_heads) head_width]
  at::Tensor q_norm_gain, k_norm_gain;  ///< [head_width]
  at::Tensor break_Q, break_K, break_V; ///< symmetry-breaking biases that are learned
  at::Tensor W_O;                       ///< [width, heads head_width]
  at::Tensor b_O;
  at::Tensor mlp_norm_gain, mlp_norm_bias;
  at::Tensor W_router; ///< [experts, width]
  at::Tensor W_up; ///< [hidden, width]; gated: [2 hidden, width], gate first; experts: [1 or 2, experts, hidden, width]
  at::Tensor b_up, slope;
  at::Tensor W_down; ///< [width, hidden]; experts: [experts, width, hidden]
  at::Tensor b_down;
};

/// The tensors of a model. Made by bind(); valid as long as the arenas.
struct Model {
  architecture::Config config;
  at::Tensor tokens;    ///< [vocab_size, width]
  at::Tensor positions; ///< [context, width]
  std::vector<Layer> layers;
  at::Tensor head_norm_gain, head_norm_bias;
  at::Tensor head; ///< [vocab_size, width]; `tokens` where it is tied
  Precision precision = Precision::f32;
  /// Attention is written out, as the fused one has no second derivative.
  bool twice_differentiable = false;
  /// Every tensor above once, and where it begins in the arena.
  struct Leaf {
    at::Tensor tensor;
    std::int64_t offset;
  };
  std::vector<Leaf> leaves;
};

/// Views over `parameters` (as long as parameter_count(config)). With `gradients` (the same length) each view is a leaf
/// whose .grad is the view over `gradients`: backward() adds to it, so set it to zero before a step.
Model bind(const architecture::Config& config, architecture::Arena& parameters,
           architecture::Arena* gradients = nullptr);

/// The symmetry-breaking biases of one step that are not learned, by layer: [1, heads or kv_heads; head_width] each;
/// undefined where there is none.
struct StepBiases {
  std::vector<at::Tensor> q, k, v;
};
/// Their means; of fixed directions, the mean of those.
StepBiases mean_biases(const architecture::Config& config);
/// Drawn from (seed, step, layer): equal on every process and in every micro-batch.
StepBiases sampled_biases(const architecture::Config& config, std::uint64_t seed, std::uint64_t step);
StepBiases no_biases(const architecture::Config& config);

/// Keys and values of the positions that were seen, a layer each: [B, kv_heads, context, head_width], `length` of them
/// filled.
struct Cache {
  std::vector<at::Tensor> keys, values;
  std::int64_t length = 0;
};
Cache make_cache(const architecture::Config& config, std::int64_t batch);

/// What meets in a layer's attention: after the norm of queries and keys where there is one, [B, T, heads or kv_heads,
/// head_width], and as they are compared, after the rotation and with their biases, [B, heads, T, head_width].
struct AttentionInputs {
  at::Tensor q, k;
  at::Tensor compared_q, compared_k;
};
using AttentionObserver = std::function<void(std::int64_t layer, const AttentionInputs& inputs)>;

/// What a layer's attention sees of x: its norm, [.., width].
at::Tensor attention_norm(const Model& model, std::int64_t layer, const at::Tensor& x);
/// x: [T, heads, head_width], queries or keys at the positions from `begin` on: rotated, where the model has RoPE.
at::Tensor rotate_to_positions(const architecture::Config& config, const at::Tensor& x, std::int64_t begin);

/// tokens: [B, T] int64, T <= context (with a cache: length + T <= context). Returns the last norm's output [B, T,
/// width]. With a cache (no gradients then) the T tokens go on from its positions, and are added to it. Throws Error
/// when T is too long.
/// balance, where it is given, becomes the mean over layers of how unequally busy their experts are (1: equally), for a
/// model that has experts. observe, where it is given, is called in each layer.
at::Tensor hidden(const Model& model, const at::Tensor& tokens, const StepBiases& biases, Cache* cache = nullptr,
                  at::Tensor* balance = nullptr, const AttentionObserver* observe = nullptr);

/// [.., width] -> [.., vocab_size]: logits.
at::Tensor logits(const Model& model, const at::Tensor& hidden_states);

/// The sum over all targets of the cross-entropy in nats, times `scale`, and for a model with experts balance_loss
/// times their balance, by these targets' share of the step; a target of -1 does not count. The logits of all positions
/// never exist together: head and cross-entropy are one operation in chunks of rows. tokens, targets: [B, T] int64. A
/// scalar tensor; backward() adds d(sum * scale) to the gradients. For a mean over a step of several micro-batches,
/// give scale = 1 / (targets that count in the whole step).
at::Tensor loss(const Model& model, const at::Tensor& tokens, const at::Tensor& targets, const StepBiases& biases,
                double scale);

/// The same, for a model that is twice_differentiable, out of operations that are; the logits exist at once.
at::Tensor smooth_loss(const Model& model, const at::Tensor& tokens, const at::Tensor& targets,
                       const StepBiases& biases, double scale);

/// The cross-entropy in nats at each target, [B, T] float32, 0 where a target is -1. No gradients.
at::Tensor token_losses(const Model& model, const at::Tensor& tokens, const at::Tensor& targets,
                        const StepBiases& biases);

} // namespace noether::models
