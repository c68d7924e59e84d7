// What a model is, as plain data: its configuration and the parameters that follow from it. No tensor library is needed
// here.
#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace noether::architecture {

enum class Norm { layer, rms };
enum class Position { learned, rope };
enum class Activation { gelu, gelu_tanh, relu, silu, prelu };
/// Which projections get symmetry-breaking biases: a bit each for queries, keys and values. Those of keys change
/// nothing, as softmax cancels them; they are there so that this can be seen.
enum class Break { none, q, k, qk, v, qv, kv, qkv };
/// Whether the heads of a layer share one symmetry-breaking vector, or have one each.
enum class BiasPer { layer, head };

/// From the words that files and command lines use ("gelu-tanh"). Throw UsageError with a suggestion.
Norm norm_of(std::string_view name);
Position position_of(std::string_view name);
Activation activation_of(std::string_view name);
Break break_of(std::string_view name);
BiasPer bias_per_of(std::string_view name);
std::vector<std::string> position_names();
std::vector<std::string> activation_names();
std::vector<std::string> break_names();
std::vector<std::string> bias_per_names();

/// The normal distribution of the components of one kind of symmetry-breaking bias. means and deviations: one number
/// for all of a head's components; two for a linear range from the first component to the last; one for each component;
/// or, with BiasPer::head, one for each component of each head, head by head. Source: arXiv 2601.22257, section 2.
struct BiasDistribution {
  std::vector<double> means{0.5}, deviations{0.05};
  double mean(std::int64_t component, std::int64_t head_width, std::int64_t head = 0) const;
  double deviation(std::int64_t component, std::int64_t head_width, std::int64_t head = 0) const;
};

/// How rotations are slowed down for contexts beyond those of the first training: `factor` times longer wavelengths.
/// original_context 0: of all (position interpolation, arXiv 2306.15595). Otherwise those of more than original_context
/// / low tokens, and none of those of less than original_context / high; between these a share of the frequency that
/// rises evenly with it (Llama 3.1's published rule).
struct RopeScaling {
  double factor = 1; ///< 1: none
  std::int64_t original_context = 0;
  double low = 1, high = 4;
};

/// A decoder-only transformer, pre-norm: x += attention(norm(x)); x += mlp(norm(x)).
struct Config {
  std::string family = "gpt2"; ///< the name of what it was made as; what it computes is said by the fields below
  std::int64_t layers = 12, heads = 12, kv_heads = 12, width = 768, head_width = 64, hidden = 3072;
  std::int64_t context = 1024, vocab_size = 50257;
  Norm norm = Norm::layer;
  double norm_epsilon = 1e-5;
  bool biases = true;     ///< ordinary learned biases of the linear layers
  bool gated_mlp = false; ///< W_down (activation(W_gate x) * W_up x) in place of W_down activation(W_up x)
  Activation activation = Activation::gelu_tanh;
  std::int64_t experts = 0;           ///< of a layer's MLP, of which a router takes some for each token; 0: one MLP
  std::int64_t experts_per_token = 2; ///< the likeliest ones
  double balance_loss = 0.01;         ///< weight in the training loss of what keeps the experts equally busy
  bool qk_norm = false;               ///< an RMS norm of each head's queries and keys, before the rotation
  bool tied_head = true;              ///< the head is the token embedding
  Position position = Position::learned;
  double rope_fraction = 1, rope_base = 10000; ///< the part of each head's components that is rotated
  RopeScaling rope_scaling;
  Break symmetry_break = Break::none;
  BiasDistribution q_bias{{0.5}, {0.05, 0.15}}, k_bias, v_bias;
  BiasPer bias_per = BiasPer::layer;
  bool learned_bias = false; ///< a control: the biases are drawn once and trained, as parameters
  std::int64_t bias_directions =
      0;                       ///< so many vectors are drawn once, and each step takes one; 0: each step draws anew
  std::uint64_t bias_seed = 0; ///< what those are drawn from

  bool breaks_q() const { return breaks(Break::q); }
  bool breaks_k() const { return breaks(Break::k); }
  bool breaks_v() const { return breaks(Break::v); }
  bool breaks(Break projection) const {
    return (static_cast<unsigned>(symmetry_break) & static_cast<unsigned>(projection)) != 0;
  }
  /// Vectors of each kind in a layer: 1, or the projection's heads.
  std::int64_t bias_heads(Break projection) const {
    return bias_per == BiasPer::layer ? 1 : projection == Break::q ? heads : kv_heads;
  }
  /// Radians a token of each pair that is rotated: [rotated() / 2], the fastest first.
  std::vector<double> rope_frequencies() const;
  /// Components of a head that are rotated: rope_fraction of them, an even number; 0 without RoPE.
  std::int64_t rotated() const;
};

/// Throws UsageError for what cannot be: "3 heads do not divide a width of 128 (set --heads or --head-width)".
void validate(const Config& config);

nlohmann::ordered_json to_json(const Config& config);
/// Throws Error for a missing, unknown or unfit field: "NAME: configuration: layers: expected a positive integer, found
/// -1".
Config config_from_json(std::string_view json, const std::string& name);

/// How a fresh parameter is filled.
struct Initial {
  double mean = 0, deviation = 0;               ///< deviation 0: the constant `mean`
  std::optional<BiasDistribution> components{}; ///< instead: [.., head_width] of this distribution
};
/// What a parameter is for: decay and per-group reports go by it.
enum class Group { embedding, attention, mlp, norm, head };
std::string_view name_of(Group group);

struct Parameter {
  std::string name; ///< its reading name, "layers/0/attention/W_Q"; the path in files is "/parameters/" + name
  std::vector<std::int64_t> shape;
  Group group;
  Initial initial;
  std::int64_t offset = 0;   ///< first element in the arena
  std::int64_t count = 0;    ///< product of shape
  std::int64_t matrices = 1; ///< that lie one after the other: those of experts
  /// A weight matrix or an embedding, as against a bias, a gain or a slope: what weight decay usually applies to. (b_Q
  /// has two dimensions, and is none.)
  bool is_matrix() const;
  /// Rows (outputs, or tokens) and columns of a matrix, or of each of its matrices; {0, 0} of what is none. Heads are
  /// not apart: W_Q is [width, width].
  std::array<std::int64_t, 2> matrix_shape() const;
  /// A row for each token of the vocabulary.
  bool has_vocabulary_rows() const;
};

/// All parameters in the order of the arena, without gaps. W_Q, W_K and W_V of a layer are neighbours, so that one
/// product makes all three, and so are W_gate and W_up.
///
/// | name | shape |
/// |---|---|
/// | embedding/tokens, embedding/positions | [vocab_size, width], [context, width] |
/// | layers/I/attention/norm_gain, norm_bias | [width] |
/// | layers/I/attention/W_Q, W_K, W_V | [heads or kv_heads, head_width, width] |
/// | layers/I/attention/b_Q, b_K, b_V | [heads or kv_heads, head_width] |
/// | layers/I/attention/q_norm_gain, k_norm_gain (qk_norm) | [head_width] |
/// | layers/I/attention/break_Q, break_K, break_V (learned_bias) | [1, heads or kv_heads; head_width] |
/// | layers/I/attention/W_O, b_O | [width, heads, head_width], [width] |
/// | layers/I/mlp/norm_gain, norm_bias | [width] |
/// | layers/I/mlp/W_router (experts) | [experts, width] |
/// | layers/I/mlp/W_gate, W_up, b_gate, b_up | [hidden, width], [hidden, width], [hidden], [hidden] |
/// | layers/I/mlp/slope (prelu) | [hidden] |
/// | layers/I/mlp/W_down, b_down | [width, hidden], [width] |
/// | (experts: with [experts, ..] before the shapes of the MLP's own) | |
/// | head/norm_gain, norm_bias | [width] |
/// | head/W_U (not tied) | [vocab_size, width] |
std::vector<Parameter> parameters(const Config& config);
/// Their total count.
std::int64_t parameter_count(const Config& config);

/// Floating-point operations a token, 2 a multiply-add: matrix products, the head's among them, and attention over a
/// full context (which a causal mask halves). Elementwise work is left out. Backward is twice forward.
struct Flops {
  double attention = 0, mlp = 0, head = 0; ///< of forward, all layers
  double forward = 0, train = 0;
};
Flops flops_per_token(const Config& config, std::int64_t context);

} // namespace noether::architecture
