// Configurations: checks, JSON, and the parameters that follow.
#include "architecture/config.h"

#include "base/choice.h"
#include "base/error.h"

#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace noether::architecture {
namespace {

// The words for choices, in files and on command lines, by the enumerator's value.
constexpr std::array kNorms{"layer", "rms"};
constexpr std::array kPositions{"learned", "rope"};
constexpr std::array kActivations{"gelu", "gelu-tanh", "relu", "silu", "prelu"};
constexpr std::array kBreaks{"none", "q", "v", "qv"};

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
  return {{"mean_first", bias.mean_first},
          {"mean_last", bias.mean_last},
          {"deviation_first", bias.deviation_first},
          {"deviation_last", bias.deviation_last}};
}

BiasDistribution bias_from(Fields fields) {
  BiasDistribution bias;
  bias.mean_first = fields.real("mean_first");
  bias.mean_last = fields.real("mean_last");
  bias.deviation_first = fields.real("deviation_first");
  bias.deviation_last = fields.real("deviation_last");
  fields.finish();
  return bias;
}

double between(double first, double last, std::int64_t component, std::int64_t count) {
  return count < 2 ? first : first + (last - first) * static_cast<double>(component) / static_cast<double>(count - 1);
}

} // namespace

double BiasDistribution::mean(std::int64_t component, std::int64_t head_width) const {
  return between(mean_first, mean_last, component, head_width);
}
double BiasDistribution::deviation(std::int64_t component, std::int64_t head_width) const {
  return between(deviation_first, deviation_last, component, head_width);
}

Norm norm_of(std::string_view name) { return choice_of<Norm>(name, kNorms, "norm"); }
Position position_of(std::string_view name) { return choice_of<Position>(name, kPositions, "position"); }
Activation activation_of(std::string_view name) { return choice_of<Activation>(name, kActivations, "activation"); }
Break break_of(std::string_view name) { return choice_of<Break>(name, kBreaks, "break"); }
std::vector<std::string> activation_names() { return {kActivations.begin(), kActivations.end()}; }
std::vector<std::string> position_names() { return {kPositions.begin(), kPositions.end()}; }
std::vector<std::string> break_names() { return {kBreaks.begin(), kBreaks.end()}; }

std::string_view name_of(Group group) {
  constexpr std::array kNames{"embedding", "attention", "mlp", "norm", "head"};
  return kNames[static_cast<std::size_t>(group)];
}

bool Parameter::is_matrix() const { return name.starts_with("embedding/") || name.find("/W_") != std::string::npos; }

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
  if (!(config.norm_epsilon > 0))
    throw UsageError("--norm-epsilon: expected a positive number, found {:g}", config.norm_epsilon);
  for (const BiasDistribution& bias : {config.q_bias, config.v_bias})
    if (bias.deviation_first < 0 || bias.deviation_last < 0) throw UsageError("a bias' deviation cannot be negative");
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
  }
  json["break"] = kBreaks[static_cast<std::size_t>(config.symmetry_break)];
  if (config.breaks_q()) json["q_bias"] = to_json(config.q_bias);
  if (config.breaks_v()) json["v_bias"] = to_json(config.v_bias);
  return json;
}

Config config_from_json(std::string_view text, const std::string& name) try {
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (parsed.is_discarded()) throw Error("{}: configuration: not JSON", name);
  Fields fields(std::move(parsed), name + ": configuration");
  Config config;
  config.family = fields.word("family");
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
  }
  config.symmetry_break = break_of(fields.word("break"));
  if (config.breaks_q()) config.q_bias = bias_from(fields.object("q_bias"));
  if (config.breaks_v()) config.v_bias = bias_from(fields.object("v_bias"));
  fields.finish();
  validate(config);
  return config;
} catch (const UsageError& error) { // a word or a combination that cannot be: here it is the file that is wrong
  throw Error("{}: configuration: {}", name, error.what());
}

std::vector<Parameter> parameters(const Config& c) {
  std::vector<Parameter> list;
  const auto add = [&list](std::string name, std::vector<std::int64_t> shape, Group group, Initial initial) {
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
    add(attention + "W_O", {c.width, c.heads, c.head_width}, Group::attention, residual);
    if (c.biases) add(attention + "b_O", {c.width}, Group::attention, zero);

    add_norm(mlp, Group::norm);
    if (c.gated_mlp) add(mlp + "W_gate", {c.hidden, c.width}, Group::mlp, normal);
    add(mlp + "W_up", {c.hidden, c.width}, Group::mlp, normal);
    if (c.biases && c.gated_mlp) add(mlp + "b_gate", {c.hidden}, Group::mlp, zero);
    if (c.biases) add(mlp + "b_up", {c.hidden}, Group::mlp, zero);
    if (c.activation == Activation::prelu) add(mlp + "slope", {c.hidden}, Group::mlp, slopes);
    add(mlp + "W_down", {c.width, c.hidden}, Group::mlp, residual);
    if (c.biases) add(mlp + "b_down", {c.width}, Group::mlp, zero);
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
  flops.mlp = 2 * layers * static_cast<double>((c.gated_mlp ? 3 : 2) * c.hidden * c.width);
  flops.head = 2 * static_cast<double>(c.vocab_size * c.width);
  flops.forward = flops.attention + flops.mlp + flops.head;
  flops.train = 3 * flops.forward;
  return flops;
}

} // namespace noether::architecture
