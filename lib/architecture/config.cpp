// Configurations: checks, JSON, and the parameters that follow.
#include "architecture/config.h"

#include "base/choice.h"
#include "base/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace noether::architecture {
namespace {

// The words for choices, in files and on command lines, by the enumerator's value.
constexpr std::array kNorms{"layer", "rms"};
constexpr std::array kPositions{"learned", "rope"};
constexpr std::array kActivations{"gelu", "gelu-tanh", "relu", "silu", "prelu"};
constexpr std::array kBreaks{"none", "q", "k", "qk", "v", "qv", "kv", "qkv"};
constexpr std::array kBiasPer{"layer", "head"};
/// The kinds of symmetry-breaking biases: the field of each, and what parameters of it are called.
struct BiasKind {
  Break projection;
  const char *field, *letter;
  BiasDistribution Config::*distribution;
};
constexpr std::array kBiasKinds{BiasKind{Break::q, "q_bias", "Q", &Config::q_bias},
                                BiasKind{Break::k, "k_bias", "K", &Config::k_bias},
                                BiasKind{Break::v, "v_bias", "V", &Config::v_bias}};

/// Takes fields out of an object, so that what is left over is unknown.
class Fields {
public:
  Fields(nlohmann::json object, std::string where) : object_(std::move(object)), where_(std::move(where)) {
    if (!object_.is_object()) throw Error("{}: expected a JSON object", where_);
  }

  std::int64_t positive(const char* name) {
    const nlohmann::json value = take(name);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > kLargest)
      throw Error("{}: {}: expected a positive integer of at most {}, found {}", where_, name, kLargest, value.dump());
    return value.get<std::int64_t>();
  }
  double real(const char* name) {
    const nlohmann::json value = take(name);
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      throw Error("{}: {}: expected a finite number, found {}", where_, name, value.dump());
    return value.get<double>();
  }
  std::int64_t count(const char* name) {
    const nlohmann::json value = take(name);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > kLargest)
      throw Error("{}: {}: expected a whole number of at most {}, found {}", where_, name, kLargest, value.dump());
    return value.get<std::int64_t>();
  }
  std::uint64_t seed(const char* name) {
    const nlohmann::json value = take(name);
    if (!value.is_number_unsigned()) throw Error("{}: {}: expected a seed, found {}", where_, name, value.dump());
    return value.get<std::uint64_t>();
  }
  std::vector<double> reals(const char* name) {
    const nlohmann::json list = take(name);
    std::vector<double> values;
    if (list.is_array())
      for (const nlohmann::json& value : list)
        if (value.is_number() && std::isfinite(value.get<double>())) values.push_back(value.get<double>());
    if (values.empty() || values.size() != list.size())
      throw Error("{}: {}: expected a list of finite numbers", where_, name);
    return values;
  }
  bool flag(const char* name) {
    const nlohmann::json value = take(name);
    if (!value.is_boolean()) throw Error("{}: {}: expected true or false, found {}", where_, name, value.dump());
    return value.get<bool>();
  }
  std::string word(const char* name) {
    const nlohmann::json value = take(name);
    if (!value.is_string()) throw Error("{}: {}: expected a string, found {}", where_, name, value.dump());
    return value.get<std::string>();
  }
  bool has(const char* name) const { return object_.contains(name); }
  Fields object(const char* name) { return {take(name), fmt::format("{}: {}", where_, name)}; }
  void finish() const {
    if (!object_.empty()) throw Error("{}: unknown field {}", where_, object_.begin().key());
  }

private:
  /// Keeps every product of two sizes and a count of layers within 64 bits.
  static constexpr std::int64_t kLargest = 1 << 24;

  nlohmann::json take(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) throw Error("{}: no field {}", where_, name);
    nlohmann::json value = *found;
    object_.erase(found);
    return value;
  }
  nlohmann::json object_;
  std::string where_;
};

nlohmann::ordered_json to_json(const BiasDistribution& bias) {
  return {{"means", bias.means}, {"deviations", bias.deviations}};
}

BiasDistribution bias_from(Fields fields) {
  BiasDistribution bias{fields.reals("means"), fields.reals("deviations")};
  fields.finish();
  return bias;
}

RopeScaling scaling_from(Fields fields) {
  RopeScaling scaling{.factor = fields.real("factor"), .original_context = fields.count("original_context")};
  if (scaling.original_context > 0) {
    scaling.low = fields.real("low");
    scaling.high = fields.real("high");
  }
  fields.finish();
  return scaling;
}

double component_of(const std::vector<double>& values, std::int64_t component, std::int64_t head_width,
                    std::int64_t head) {
  const auto size = static_cast<std::int64_t>(values.size());
  if (size == 1) return values[0];
  if (size == 2 && head_width > 2)
    return values[0] + (values[1] - values[0]) * static_cast<double>(component) / static_cast<double>(head_width - 1);
  return values[static_cast<std::size_t>(size == head_width ? component : head * head_width + component)];
}

void validate_bias(const Config& config, const BiasKind& kind) {
  const BiasDistribution& bias = config.*kind.distribution;
  for (const std::vector<double>* values : {&bias.means, &bias.deviations}) {
    const auto size = static_cast<std::int64_t>(values->size());
    const std::int64_t all = config.bias_heads(kind.projection) * config.head_width;
    if (size != 1 && size != config.head_width && size != all && (size != 2 || config.head_width < 2))
      throw UsageError("the biases' distribution ({}): expected 1 number, 2 for a range, {} for a head's components{}, "
                       "found {}",
                       kind.field, config.head_width,
                       config.bias_per == BiasPer::head ? fmt::format(" or {} for those of all heads", all) : "", size);
  }
  if (*std::min_element(bias.deviations.begin(), bias.deviations.end()) < 0)
    throw UsageError("a bias' deviation cannot be negative");
}

} // namespace

double BiasDistribution::mean(std::int64_t component, std::int64_t head_width, std::int64_t head) const {
  return component_of(means, component, head_width, head);
}
double BiasDistribution::deviation(std::int64_t component, std::int64_t head_width, std::int64_t head) const {
  return component_of(deviations, component, head_width, head);
}

Norm norm_of(std::string_view name) { return choice_of<Norm>(name, kNorms, "norm"); }
Position position_of(std::string_view name) { return choice_of<Position>(name, kPositions, "position"); }
Activation activation_of(std::string_view name) { return choice_of<Activation>(name, kActivations, "activation"); }
Break break_of(std::string_view name) { return choice_of<Break>(name, kBreaks, "break"); }
BiasPer bias_per_of(std::string_view name) { return choice_of<BiasPer>(name, kBiasPer, "bias scope"); }
std::vector<std::string> activation_names() { return {kActivations.begin(), kActivations.end()}; }
std::vector<std::string> position_names() { return {kPositions.begin(), kPositions.end()}; }
std::vector<std::string> break_names() { return {kBreaks.begin(), kBreaks.end()}; }
std::vector<std::string> bias_per_names() { return {kBiasPer.begin(), kBiasPer.end()}; }

std::string_view name_of(Group group) {
  constexpr std::array kNames{"embedding", "attention", "mlp", "norm", "head"};
  return kNames[static_cast<std::size_t>(group)];
}

bool Parameter::is_matrix() const { return name.starts_with("embedding/") || name.find("/W_") != std::string::npos; }

std::array<std::int64_t, 2> Parameter::matrix_shape() const {
  if (!is_matrix()) return {0, 0};
  const std::int64_t size = count / matrices, rows = name.ends_with("/W_O") ? shape.front() : size / shape.back();
  return {rows, size / rows};
}
bool Parameter::has_vocabulary_rows() const { return name == "embedding/tokens" || name == "head/W_U"; }

std::vector<double> Config::rope_frequencies() const {
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < rotated() / 2; ++i) {
    double& frequency = frequencies.emplace_back(
        std::exp(-2 * static_cast<double>(i) / static_cast<double>(rotated()) * std::log(rope_base)));
    // How much of it is kept: all of what turns `high` times within the original context, none below `low`.
    const double turns = static_cast<double>(rope_scaling.original_context) * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - rope_scaling.low) / (rope_scaling.high - rope_scaling.low), 0.0, 1.0);
    frequency *= kept + (1 - kept) / rope_scaling.factor;
  }
  return frequencies;
}

std::int64_t Config::rotated() const {
  if (position != Position::rope) return 0;
  return 2 * static_cast<std::int64_t>(std::floor(rope_fraction * static_cast<double>(head_width) / 2));
}

void validate(const Config& config) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"--layers", config.layers},   {"--heads", config.heads},           {"--kv-heads", config.kv_heads},
      {"--width", config.width},     {"--head-width", config.head_width}, {"--hidden", config.hidden},
      {"--context", config.context}, {"--vocab-size", config.vocab_size}};
  for (const auto& [name, size] : sizes)
    if (size < 1) throw UsageError("{}: expected a positive number, found {}", name, size);
  if (config.heads % config.kv_heads != 0)
    throw UsageError("{} key/value heads do not divide {} heads", config.kv_heads, config.heads);
  if (config.position == Position::rope && !(config.rope_fraction > 0 && config.rope_fraction <= 1))
    throw UsageError("--rope-fraction: expected a number above 0 and at most 1, found {:g}", config.rope_fraction);
  if (config.position == Position::rope && config.rotated() == 0)
    throw UsageError("--rope-fraction {:g} of a head width of {} leaves nothing to rotate", config.rope_fraction,
                     config.head_width);
  if (!(config.rope_base > 0))
    throw UsageError("--rope-base: expected a positive number, found {:g}", config.rope_base);
  if (const RopeScaling& scaling = config.rope_scaling;
      !(scaling.factor > 0 && scaling.original_context >= 0 && scaling.low > 0 && scaling.high > scaling.low))
    throw UsageError(
        "the rotations' scaling: expected a positive factor, and low below high, found {:g}, {:g} and {:g}",
        scaling.factor, scaling.low, scaling.high);
  if (!(config.norm_epsilon > 0))
    throw UsageError("--norm-epsilon: expected a positive number, found {:g}", config.norm_epsilon);
  if (config.experts > 0 && (config.experts_per_token < 1 || config.experts_per_token > config.experts))
    throw UsageError("--experts-per-token: expected 1 to {}, found {}", config.experts, config.experts_per_token);
  if (!(config.balance_loss >= 0))
    throw UsageError("--balance-loss: expected 0 or more, found {:g}", config.balance_loss);
  for (const BiasKind& kind : kBiasKinds)
    if (config.breaks(kind.projection)) validate_bias(config, kind);
  if (config.learned_bias && config.bias_directions > 0)
    throw UsageError("biases cannot be learned and taken from fixed directions at once");
}

nlohmann::ordered_json to_json(const Config& config) {
  nlohmann::ordered_json json{
      {"family", config.family},
      {"layers", config.layers},
      {"heads", config.heads},
      {"kv_heads", config.kv_heads},
      {"width", config.width},
      {"head_width", config.head_width},
      {"hidden", config.hidden},
      {"context", config.context},
      {"vocab_size", config.vocab_size},
      {"norm", kNorms[static_cast<std::size_t>(config.norm)]},
      {"norm_epsilon", config.norm_epsilon},
      {"biases", config.biases},
      {"gated_mlp", config.gated_mlp},
      {"activation", kActivations[static_cast<std::size_t>(config.activation)]},
      {"tied_head", config.tied_head},
      {"position", kPositions[static_cast<std::size_t>(config.position)]},
  };
  // What has no effect in a configuration is not written, so that it cannot be mistaken for something that has.
  if (config.position == Position::rope) {
    json["rope_fraction"] = config.rope_fraction;
    json["rope_base"] = config.rope_base;
    if (const RopeScaling& scaling = config.rope_scaling; scaling.factor != 1) {
      json["rope_scaling"] = {{"factor", scaling.factor}, {"original_context", scaling.original_context}};
      if (scaling.original_context > 0) json["rope_scaling"].update({{"low", scaling.low}, {"high", scaling.high}});
    }
  }
  if (config.experts > 0) {
    json["experts"] = config.experts;
    json["experts_per_token"] = config.experts_per_token;
    json["balance_loss"] = config.balance_loss;
  }
  if (config.qk_norm) json["qk_norm"] = true;
  json["break"] = kBreaks[static_cast<std::size_t>(config.symmetry_break)];
  for (const BiasKind& kind : kBiasKinds)
    if (config.breaks(kind.projection)) json[kind.field] = to_json(config.*kind.distribution);
  if (config.symmetry_break == Break::none) return json;
  json["bias_per"] = kBiasPer[static_cast<std::size_t>(config.bias_per)];
  json["learned_bias"] = config.learned_bias;
  json["bias_directions"] = config.bias_directions;
  if (config.bias_directions > 0) json["bias_seed"] = config.bias_seed;
  return json;
}

Config config_from_json(std::string_view text, const std::string& name) try {
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (parsed.is_discarded()) throw Error("{}: configuration: not JSON", name);
  Fields fields(std::move(parsed), name + ": configuration");
  Config config;
  config.family = fields.word("family");
  if (config.family == "linear-transformer") throw Error("{}: a linear transformer, which train alone takes", name);
  config.layers = fields.positive("layers");
  config.heads = fields.positive("heads");
  config.kv_heads = fields.positive("kv_heads");
  config.width = fields.positive("width");
  config.head_width = fields.positive("head_width");
  config.hidden = fields.positive("hidden");
  config.context = fields.positive("context");
  config.vocab_size = fields.positive("vocab_size");
  config.norm = norm_of(fields.word("norm"));
  config.norm_epsilon = fields.real("norm_epsilon");
  config.biases = fields.flag("biases");
  config.gated_mlp = fields.flag("gated_mlp");
  config.activation = activation_of(fields.word("activation"));
  config.tied_head = fields.flag("tied_head");
  config.position = position_of(fields.word("position"));
  if (config.position == Position::rope) {
    config.rope_fraction = fields.real("rope_fraction");
    config.rope_base = fields.real("rope_base");
    if (fields.has("rope_scaling")) config.rope_scaling = scaling_from(fields.object("rope_scaling"));
  }
  if (fields.has("experts")) {
    config.experts = fields.positive("experts");
    config.experts_per_token = fields.positive("experts_per_token");
    config.balance_loss = fields.real("balance_loss");
  }
  config.qk_norm = fields.has("qk_norm") && fields.flag("qk_norm");
  config.symmetry_break = break_of(fields.word("break"));
  for (const BiasKind& kind : kBiasKinds)
    if (config.breaks(kind.projection)) config.*kind.distribution = bias_from(fields.object(kind.field));
  if (config.symmetry_break != Break::none) {
    config.bias_per = bias_per_of(fields.word("bias_per"));
    config.learned_bias = fields.flag("learned_bias");
    config.bias_directions = fields.count("bias_directions");
    if (config.bias_directions > 0) config.bias_seed = fields.seed("bias_seed");
  }
  fields.finish();
  validate(config);
  return config;
} catch (const UsageError& error) { // a word or a combination that cannot be: here it is the file that is wrong
  throw Error("{}: configuration: {}", name, error.what());
}

std::vector<Parameter> parameters(const Config& c) {
  std::vector<Parameter> list;
  const auto add = [&list](std::string name, std::vector<std::int64_t> shape, Group group, const Initial& initial) {
    Parameter parameter{std::move(name), std::move(shape), group, initial};
    parameter.count =
        std::accumulate(parameter.shape.begin(), parameter.shape.end(), std::int64_t{1}, std::multiplies<>());
    parameter.offset = list.empty() ? 0 : list.back().offset + list.back().count;
    list.push_back(std::move(parameter));
  };
  // Source of the deviations: GPT-2; arXiv 2601.22257, section 1 for the slopes.
  const Initial normal{0, 0.02}, residual{0, 0.02 / std::sqrt(2.0 * static_cast<double>(c.layers))}, zero{}, one{1, 0},
      slopes{0.2, 1};
  const auto add_norm = [&](const std::string& prefix, Group group) {
    add(prefix + "norm_gain", {c.width}, group, one);
    if (c.norm == Norm::layer) add(prefix + "norm_bias", {c.width}, group, zero);
  };

  add("embedding/tokens", {c.vocab_size, c.width}, Group::embedding, normal);
  if (c.position == Position::learned) add("embedding/positions", {c.context, c.width}, Group::embedding, normal);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string attention = fmt::format("layers/{}/attention/", layer),
                      mlp = fmt::format("layers/{}/mlp/", layer);
    add_norm(attention, Group::norm);
    add(attention + "W_Q", {c.heads, c.head_width, c.width}, Group::attention, normal);
    add(attention + "W_K", {c.kv_heads, c.head_width, c.width}, Group::attention, normal);
    add(attention + "W_V", {c.kv_heads, c.head_width, c.width}, Group::attention, normal);
    if (c.biases) {
      add(attention + "b_Q", {c.heads, c.head_width}, Group::attention, zero);
      add(attention + "b_K", {c.kv_heads, c.head_width}, Group::attention, zero);
      add(attention + "b_V", {c.kv_heads, c.head_width}, Group::attention, zero);
    }
    if (c.qk_norm) add(attention + "q_norm_gain", {c.head_width}, Group::norm, one);
    if (c.qk_norm) add(attention + "k_norm_gain", {c.head_width}, Group::norm, one);
    for (const BiasKind& kind : kBiasKinds)
      if (c.learned_bias && c.breaks(kind.projection))
        add(attention + "break_" + kind.letter, {c.bias_heads(kind.projection), c.head_width}, Group::attention,
            {.components = c.*kind.distribution});
    add(attention + "W_O", {c.width, c.heads, c.head_width}, Group::attention, residual);
    if (c.biases) add(attention + "b_O", {c.width}, Group::attention, zero);

    add_norm(mlp, Group::norm);
    const auto add_mlp = [&](const char* name, std::vector<std::int64_t> shape, const Initial& initial) {
      if (c.experts > 0) shape.insert(shape.begin(), c.experts);
      add(mlp + name, std::move(shape), Group::mlp, initial);
      if (c.experts > 0 && list.back().is_matrix()) list.back().matrices = c.experts;
    };
    if (c.experts > 0) add(mlp + "W_router", {c.experts, c.width}, Group::mlp, normal);
    if (c.gated_mlp) add_mlp("W_gate", {c.hidden, c.width}, normal);
    add_mlp("W_up", {c.hidden, c.width}, normal);
    if (c.biases && c.gated_mlp) add_mlp("b_gate", {c.hidden}, zero);
    if (c.biases) add_mlp("b_up", {c.hidden}, zero);
    if (c.activation == Activation::prelu) add_mlp("slope", {c.hidden}, slopes);
    add_mlp("W_down", {c.width, c.hidden}, residual);
    if (c.biases) add_mlp("b_down", {c.width}, zero);
  }
  add_norm("head/", Group::norm);
  if (!c.tied_head) add("head/W_U", {c.vocab_size, c.width}, Group::head, normal);
  return list;
}

std::int64_t parameter_count(const Config& config) {
  const std::vector<Parameter> list = parameters(config);
  return list.back().offset + list.back().count;
}

Flops flops_per_token(const Config& c, std::int64_t context) {
  const auto layers = static_cast<double>(c.layers);
  const auto projections = static_cast<double>((2 * c.heads + 2 * c.kv_heads) * c.head_width * c.width);
  const auto scores = static_cast<double>(c.heads * c.head_width * context); // q k and p v, halved by the causal mask
  Flops flops;
  flops.attention = 2 * layers * (projections + scores);
  const std::int64_t mlps = c.experts > 0 ? c.experts_per_token : 1;
  flops.mlp = 2 * layers * static_cast<double>((mlps * (c.gated_mlp ? 3 : 2) * c.hidden + c.experts) * c.width);
  flops.head = 2 * static_cast<double>(c.vocab_size * c.width);
  flops.forward = flops.attention + flops.mlp + flops.head;
  flops.train = 3 * flops.forward;
  return flops;
}

} // namespace noether::architecture
