// Names and configurations of GPT-2, Llama and the symmetry-breaking authors' models. Sources: Hugging Face
// transformers 5.24 (configuration and modelling files of gpt2 and llama); Meta's llama, model.py; the authors'
// programs (github.com/evasilverstein/symmetry-breaking-files), for arXiv 2601.22257. No code of theirs.
#include "formats/model_layouts.h"

#include "base/error.h"
#include "base/number.h"
#include "formats/model_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace noether::formats {
namespace {

using namespace architecture;
using nlohmann::json;

Activation activation_from(const Settings& settings, std::initializer_list<const char*> names, const char* otherwise) {
  constexpr std::array<std::pair<std::string_view, Activation>, 7> kWords{{{"gelu_new", Activation::gelu_tanh},
                                                                           {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                           {"gelu_fast", Activation::gelu_tanh},
                                                                           {"gelu", Activation::gelu},
                                                                           {"relu", Activation::relu},
                                                                           {"silu", Activation::silu},
                                                                           {"swish", Activation::silu}}};
  const std::string word = settings.word(names, otherwise);
  for (const auto& [known, activation] : kWords)
    if (known == word) return activation;
  settings.unfit(names, "gelu_new, gelu, relu or silu", settings.find(names));
}

void expect_layers(const Source& source, const Config& config) { // before names are made of a number in a file
  if (config.layers > source.tensors())
    throw Error("{}: {} layers in {} tensors", source.name(), config.layers, source.tensors());
}

std::int64_t head_width_of(const std::string& name, std::int64_t width, std::int64_t heads) {
  if (heads < 1 || width % heads != 0) throw Error("{}: {} heads do not divide a width of {}", name, heads, width);
  return width / heads;
}

/// GPT-2's block under the names of two programs. transposed: matrices are [in, out].
struct Gpt2Names {
  const char *attention, *attention_norm, *mlp_norm;
  bool transposed;
};

void place_gpt2(Source& source, const Config& c, const std::string& body, const Gpt2Names& names) {
  const auto matrix = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    return names.transposed ? swapped(source.take(name, {in, out}), 0, 1) : source.take(name, {out, in});
  };
  const auto norm = [&](const std::string& ours, const std::string& theirs) {
    source.place(ours + "norm_gain", source.take(theirs + ".weight", {c.width}));
    source.place(ours + "norm_bias", source.take(theirs + ".bias", {c.width}));
  };
  source.place("embedding/tokens", source.take(body + "wte.weight", {c.vocab_size, c.width}));
  if (c.position == Position::learned)
    source.place("embedding/positions", source.take(body + "wpe.weight", {c.context, c.width}));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const std::string block = fmt::format("{}h.{}.", body, i), a = fmt::format("layers/{}/attention/", i),
                      m = fmt::format("layers/{}/mlp/", i), attention = block + names.attention;
    norm(a, block + names.attention_norm);
    source.place_qkv(a + "W_", matrix(attention + ".c_attn.weight", 3 * c.width, c.width), c);
    source.place_qkv(a + "b_", source.take(attention + ".c_attn.bias", {3 * c.width}), c);
    source.place(a + "W_O", matrix(attention + ".c_proj.weight", c.width, c.width));
    source.place(a + "b_O", source.take(attention + ".c_proj.bias", {c.width}));
    norm(m, block + names.mlp_norm);
    source.place(m + "W_up", matrix(block + "mlp.c_fc.weight", c.hidden, c.width));
    source.place(m + "b_up", source.take(block + "mlp.c_fc.bias", {c.hidden}));
    if (c.activation == Activation::prelu) source.place(m + "slope", source.take(block + "mlp.act.weight", {c.hidden}));
    source.place(m + "W_down", matrix(block + "mlp.c_proj.weight", c.width, c.hidden));
    source.place(m + "b_down", source.take(block + "mlp.c_proj.bias", {c.width}));
  }
  norm("head/", body + "ln_f");
  source.place_head("lm_head.weight", body + "wte.weight", c);
}

Settings settings_of(const ForeignModel& model, const char* file) {
  if (model.settings_name.empty())
    throw Error("{}: no {} beside it, which says what the tensors do not", model.name, file);
  return {model.settings, model.settings_name};
}

Checkpoint hugging_face_gpt2(const ForeignModel& model, const std::string& prefix, const std::string& body) {
  const Settings settings = settings_of(model, "config.json");
  if (settings.word({"model_type"}, "gpt2") != "gpt2")
    settings.unfit({"model_type"}, "gpt2", settings.find({"model_type"}));
  settings.must("scale_attn_weights", true);
  settings.must("scale_attn_by_inverse_layer_idx", false);
  settings.must("add_cross_attention", false);
  Source source(model, prefix);
  Config c; // GPT-2 is what a Config begins as
  c.layers = settings.count({"n_layer", "num_hidden_layers"});
  c.heads = c.kv_heads = settings.count({"n_head", "num_attention_heads"});
  c.width = settings.count({"n_embd", "hidden_size"});
  c.head_width = head_width_of(settings.where, c.width, c.heads);
  c.hidden = settings.count_if({"n_inner"}).value_or(4 * c.width);
  c.context = settings.count({"n_positions", "n_ctx"});
  c.vocab_size = settings.count({"vocab_size"});
  c.norm_epsilon = settings.real({"layer_norm_epsilon"}, 1e-5);
  c.activation = activation_from(settings, {"activation_function"}, "gelu_new");
  c.tied_head = settings.flag({"tie_word_embeddings"}, true);
  expect_layers(source, c);
  place_gpt2(source, c, body, {"attn", "ln_1", "ln_2", true});
  source.ignore(body + "h.", c.layers, {"attn.bias", "attn.masked_bias"}); // the causal mask
  return source.finish(c);
}

/// Llama's block; Config's parts that its two layouts share.
Config llama_config() {
  Config c;
  c.family = "llama";
  c.norm = Norm::rms;
  c.biases = false;
  c.gated_mlp = true;
  c.activation = Activation::silu;
  c.tied_head = false;
  c.position = Position::rope;
  return c;
}

/// Rows of a head in pairs (2 i, 2 i + 1), as (i, i + half).
Tensor pairs_apart(const Tensor& rows, std::int64_t head_width) {
  return swapped(split(split(rows, 0, head_width), 1, 2), 1, 2);
}

struct LlamaNames {
  const char *embedding, *layers, *attention_norm, *q, *k, *v, *o, *mlp_norm, *gate, *up, *down, *norm, *head;
  bool pairs_are_neighbours;
};

/// root: before the names of what is in no layer's stack, as the head is of Hugging Face's.
void place_llama(Source& source, const Config& c, const std::string& body, const LlamaNames& names) {
  const std::int64_t q_rows = c.heads * c.head_width, kv_rows = c.kv_heads * c.head_width;
  const auto turned = [&](const Tensor& matrix) {
    return names.pairs_are_neighbours ? pairs_apart(matrix, c.head_width) : matrix;
  };
  source.place("embedding/tokens", source.take(body + names.embedding + ".weight", {c.vocab_size, c.width}));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const std::string block = fmt::format("{}{}{}.", body, names.layers, i), a = fmt::format("layers/{}/attention/", i),
                      m = fmt::format("layers/{}/mlp/", i);
    const auto weight = [&](const char* name, const std::vector<std::int64_t>& shape) -> const Tensor& {
      return source.take(fmt::format("{}{}.weight", block, name), shape);
    };
    source.place(a + "norm_gain", weight(names.attention_norm, {c.width}));
    source.place(a + "W_Q", turned(weight(names.q, {q_rows, c.width})));
    source.place(a + "W_K", turned(weight(names.k, {kv_rows, c.width})));
    source.place(a + "W_V", weight(names.v, {kv_rows, c.width}));
    source.place(a + "W_O", weight(names.o, {c.width, q_rows}));
    source.place(m + "norm_gain", weight(names.mlp_norm, {c.width}));
    source.place(m + "W_gate", weight(names.gate, {c.hidden, c.width}));
    source.place(m + "W_up", weight(names.up, {c.hidden, c.width}));
    source.place(m + "W_down", weight(names.down, {c.width, c.hidden}));
    if (!c.biases) continue;
    const auto bias = [&](const char* name, std::int64_t size) -> const Tensor& {
      return source.take(fmt::format("{}{}.bias", block, name), {size});
    };
    source.place(a + "b_Q", bias(names.q, q_rows));
    source.place(a + "b_K", bias(names.k, kv_rows));
    source.place(a + "b_V", bias(names.v, kv_rows));
    source.place(a + "b_O", bias(names.o, c.width));
    source.place(m + "b_gate", bias(names.gate, c.hidden));
    source.place(m + "b_up", bias(names.up, c.hidden));
    source.place(m + "b_down", bias(names.down, c.width));
  }
  source.place("head/norm_gain", source.take(body + names.norm + ".weight", {c.width}));
  source.place_head(fmt::format("{}.weight", names.head), fmt::format("{}{}.weight", body, names.embedding), c);
}

RopeScaling scaling_of(const Settings& rope) {
  const std::string type = rope.word({"rope_type", "type"}, "default");
  if (type == "default") return {};
  if (type != "linear" && type != "llama3")
    rope.unfit({"rope_type"}, "default, linear or llama3", rope.find({"rope_type", "type"}));
  RopeScaling scaling{.factor = rope.real({"factor"}, 0)};
  if (type == "linear") return scaling;
  scaling.original_context = rope.count({"original_max_position_embeddings"});
  scaling.low = rope.real({"low_freq_factor"}, 0);
  scaling.high = rope.real({"high_freq_factor"}, 0);
  return scaling;
}

Checkpoint hugging_face_llama(const ForeignModel& model, const std::string& prefix, const std::string& body) {
  const Settings settings = settings_of(model, "config.json"), rope = settings.below("rope_parameters"),
                 scaling = settings.below("rope_scaling");
  if (settings.word({"model_type"}, "llama") != "llama")
    settings.unfit({"model_type"}, "llama", settings.find({"model_type"}));
  for (const Settings& part : {settings, rope})
    if (part.real({"partial_rotary_factor"}, 1) != 1)
      part.unfit({"partial_rotary_factor"}, "1", part.find({"partial_rotary_factor"}));
  Source source(model, prefix);
  Config c = llama_config();
  c.layers = settings.count({"num_hidden_layers"});
  c.heads = settings.count({"num_attention_heads"});
  c.kv_heads = settings.count_if({"num_key_value_heads"}).value_or(c.heads);
  c.width = settings.count({"hidden_size"});
  const std::optional<std::int64_t> head_width = settings.count_if({"head_dim"});
  c.head_width = head_width ? *head_width : head_width_of(settings.where, c.width, c.heads);
  c.hidden = settings.count({"intermediate_size"});
  c.context = settings.count({"max_position_embeddings"});
  c.vocab_size = settings.count({"vocab_size"});
  c.norm_epsilon = settings.real({"rms_norm_eps"}, 1e-6);
  c.rope_base = rope.real({"rope_theta"}, settings.real({"rope_theta"}, 10000));
  for (const Settings& part : {rope, scaling})
    if (part.find({"rope_type", "type"}) != nullptr) c.rope_scaling = scaling_of(part);
  c.activation = activation_from(settings, {"hidden_act"}, "silu");
  c.tied_head = settings.flag({"tie_word_embeddings"}, false);
  c.biases = settings.flag({"attention_bias"}, false);
  if (settings.flag({"mlp_bias"}, false) != c.biases)
    settings.unfit({"mlp_bias"}, "the same as attention_bias", settings.find({"mlp_bias"}));
  expect_layers(source, c);
  place_llama(source, c, body,
              {"embed_tokens", "layers.", "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
               "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "norm",
               "lm_head", false});
  source.ignore(body + "layers.", c.layers, {"self_attn.rotary_emb.inv_freq"});
  return source.finish(c);
}

Checkpoint meta_llama(const ForeignModel& model, const std::string& prefix) {
  const Settings settings = settings_of(model, "params.json");
  Source source(model, prefix);
  Config c = llama_config();
  c.layers = settings.count({"n_layers"});
  c.heads = settings.count({"n_heads"});
  c.kv_heads = settings.count_if({"n_kv_heads"}).value_or(c.heads);
  c.width = settings.count({"dim"});
  c.head_width = head_width_of(settings.where, c.width, c.heads);
  c.hidden = source.shape("layers.0.feed_forward.w1.weight", 2)[0]; // what dim and multiple_of lead to
  c.vocab_size = source.shape("tok_embeddings.weight", 2)[0];       // -1 in some params.json
  const std::string mask = "layers.0.attention.mask";
  c.context = settings.count_if({"max_seq_len"}).value_or(source.has(mask) ? source.shape(mask, 4)[3] : 2048);
  c.norm_epsilon = settings.real({"norm_eps"}, 1e-5);
  c.rope_base = settings.real({"rope_theta"}, 10000);
  // What Llama 3.1's program takes where its settings say no more.
  if (settings.flag({"use_scaled_rope"}, false))
    c.rope_scaling = {.factor = settings.real({"rope_scaling_factor"}, 8), .original_context = 8192};
  c.tied_head = !source.has("output.weight");
  expect_layers(source, c);
  if (c.head_width % 2 != 0)
    throw Error("{}: heads of {} components, expected an even number", settings.where, c.head_width);
  place_llama(source, c, "",
              {"tok_embeddings", "layers.", "attention_norm", "attention.wq", "attention.wk", "attention.wv",
               "attention.wo", "ffn_norm", "feed_forward.w1", "feed_forward.w3", "feed_forward.w2", "norm", "output",
               true});
  source.ignore("layers.", c.layers, {"attention.mask", "attention.inner_attention.rope.freqs"});
  source.ignore("rope.freqs");
  return source.finish(c);
}

/// As a configuration of ours says it: one number, the ends of a linear range, or all of them.
std::vector<double> condensed(const std::vector<float>& values) {
  // 0.05 in float32 is meant as 0.05, not as the double next to it.
  const auto decimal = [](float x) { return *parse_real(fmt::format("{}", x)); };
  const double first = values.front(), last = values.back();
  double off_line = 0, off_first = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double share = values.size() > 1 ? static_cast<double>(i) / static_cast<double>(values.size() - 1) : 0;
    off_line = std::max(off_line, std::abs(values[i] - (first + (last - first) * share)));
    off_first = std::max(off_first, std::abs(values[i] - first));
  }
  if (off_first == 0) return {decimal(values.front())};
  // A few roundings of float32, as those of torch.linspace.
  if (values.size() > 2 && off_line < 4e-7 * std::max(std::abs(first), std::abs(last)))
    return {decimal(values.front()), decimal(values.back())};
  std::vector<double> all(values.size());
  std::transform(values.begin(), values.end(), all.begin(), decimal);
  return all;
}

/// The distribution of one kind of biases, which all layers must share.
BiasDistribution authors_biases(Source& source, const std::string& body, const Config& c, char letter) {
  std::vector<float> means, deviations;
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = fmt::format("{}h.{}.sa.", body, i);
    const auto mean = source.numbers(fmt::format("{}mean_{}", layer, letter), {c.head_width});
    const auto deviation = source.numbers(fmt::format("{}std_{}", layer, letter), {c.head_width});
    for (const std::vector<float>* values : {&mean, &deviation})
      if (!std::all_of(values->begin(), values->end(), [](float x) { return std::isfinite(x); }))
        throw Error("{}: layer {}: the distribution of b{} is not finite", source.name(), i, letter);
    if (i > 0 && (mean != means || deviation != deviations))
      throw Error("{}: layer {} draws b{} from another distribution than layer 0, which is not supported",
                  source.name(), i, letter);
    means = mean;
    deviations = deviation;
  }
  return {condensed(means), condensed(deviations)};
}

Checkpoint authors_gpt2(const ForeignModel& model, const std::string& prefix, const std::string& body,
                        std::optional<std::int64_t> heads) {
  Source source(model, prefix);
  const Settings all{model.inside, model.name}, settings = all.below("config"), broken = all.below("symmetry_breaking");
  Config c;
  const std::vector<std::int64_t> embedding = source.shape(body + "wte.weight", 2);
  c.vocab_size = embedding[0];
  c.width = embedding[1];
  c.layers = 0;
  while (source.has(fmt::format("{}h.{}.sa.c_attn.weight", body, c.layers))) ++c.layers;
  const std::string first = body + "h.0.", attention = first + "sa.";
  c.hidden = source.shape(first + "mlp.c_fc.weight", 2)[0];
  std::optional<std::int64_t> said = settings.count_if({"n_head"});
  for (const char* name : {"mean_Q", "mean_V"})
    if (!said && source.has(attention + name)) said = c.width / source.shape(attention + name, 1)[0];
  if (said && heads && *said != *heads)
    throw UsageError("{}: --heads {}, and the file says {}", model.name, *heads, *said);
  if (!said && !heads) throw UsageError("{}: does not say how many heads it has (give --heads)", model.name);
  c.heads = c.kv_heads = said ? *said : *heads;
  c.head_width = head_width_of(model.name, c.width, c.heads);
  c.activation = source.has(first + "mlp.act.weight") ? Activation::prelu : Activation::gelu;
  const std::string mask = attention + "causal_mask";
  if (source.has(body + "wpe.weight")) {
    c.context = source.shape(body + "wpe.weight", 2)[0];
  } else {
    c.position = Position::rope;
    c.context = settings.count_if({"context_length"}).value_or(source.has(mask) ? source.shape(mask, 4)[3] : 512);
    c.rope_fraction = settings.real({"rope_pct"}, 0.5);
    c.rope_base = settings.real({"rotary_base"}, 10000);
  }

  // Their broken layers have buffers for biases of all kinds, whether these are used or not. Drawn ones are not zero.
  unsigned kinds = 0;
  const auto breaks = [&](Break kind, char letter, BiasDistribution& distribution) {
    distribution = authors_biases(source, body, c, letter);
    kinds |= static_cast<unsigned>(kind);
  };
  const bool has_q = source.has(attention + "mean_Q"), has_v = source.has(attention + "mean_V");
  if (has_q) breaks(Break::q, 'Q', c.q_bias);
  if (has_v && broken.flag({"bV"}, source.any(attention + "bV") || source.any(attention + "mean_V")))
    breaks(Break::v, 'V', c.v_bias);
  // Those of keys change nothing, and their buffers do not say whether they were used: the archive must.
  if (has_q && broken.flag({"bK"}, false)) breaks(Break::k, 'K', c.k_bias);
  c.symmetry_break = static_cast<Break>(kinds);

  place_gpt2(source, c, body, {"sa", "ln1", "ln2", false});
  source.ignore(body + "h.", c.layers,
                {"sa.causal_mask", "sa.mean_Q", "sa.std_Q", "sa.bQ", "sa.mean_K", "sa.std_K", "sa.bK", "sa.mean_V",
                 "sa.std_V", "sa.bV"});
  return source.finish(c);
}

} // namespace

Checkpoint from_foreign(const ForeignModel& model, std::optional<std::int64_t> heads) {
  struct Layout {
    std::string_view anchor,
        body; ///< the tensor that tells it, and what stands before the names of its layers at times
  };
  static constexpr std::array<Layout, 4> kLayouts{{{"h.0.attn.c_attn.weight", "transformer."},
                                                   {"layers.0.self_attn.q_proj.weight", "model."},
                                                   {"layers.0.attention.wq.weight", ""},
                                                   {"h.0.sa.c_attn.weight", "transformer."}}};
  for (std::size_t which = 0; which < kLayouts.size(); ++which) {
    const auto [anchor, usual] = kLayouts[which];
    for (const auto& [name, unused] : model.tensors) {
      if (!name.ends_with(anchor)) continue;
      std::string prefix = name.substr(0, name.size() - anchor.size());
      if (!prefix.empty() && !prefix.ends_with('.')) continue;
      const std::string body(prefix.ends_with(usual) ? usual : "");
      prefix.resize(prefix.size() - body.size());
      switch (which) {
      case 0:
        return hugging_face_gpt2(model, prefix, body);
      case 1:
        return hugging_face_llama(model, prefix, body);
      case 2:
        return meta_llama(model, prefix);
      default:
        return authors_gpt2(model, prefix, body, heads);
      }
    }
  }
  if (model.tensors.empty()) throw Error("{}: no tensors", model.name);
  throw Error("{}: none of the models that are known: GPT-2 or Llama of Hugging Face, Llama of Meta, or the "
              "symmetry-breaking authors' (its first tensor is {})",
              model.name, shown(model.tensors.begin()->first));
}

} // namespace noether::formats
