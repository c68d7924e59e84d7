// Published sizes. Source: GPT-2's model sizes, as arXiv 2601.22257, section 4, uses them; Llama's at the same widths.
#include "architecture/presets.h"

#include "base/error.h"

#include <algorithm>

namespace noether::architecture {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> list{
      {"gpt2", "gpt2", 12, 12, 768},         {"llama", "llama", 12, 12, 768},
      {"gpt2-124m", "gpt2", 12, 12, 768},    {"gpt2-355m", "gpt2", 24, 16, 1024},
      {"gpt2-774m", "gpt2", 36, 20, 1280},   {"gpt2-1.3b", "gpt2", 48, 25, 1600},
      {"llama-124m", "llama", 12, 12, 768},  {"llama-355m", "llama", 24, 16, 1024},
      {"llama-774m", "llama", 36, 20, 1280}, {"llama-1.3b", "llama", 48, 25, 1600},
  };
  return list;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.emplace_back(preset.name);
  return names;
}

Config describe(const std::string& name, const Sizes& sizes) {
  const auto found =
      std::find_if(presets().begin(), presets().end(), [&](const Preset& preset) { return name == preset.name; });
  if (found == presets().end()) throw UsageError("unknown architecture {}{}", name, did_you_mean(name, preset_names()));

  Config config;
  config.family = found->family;
  const bool llama = config.family == "llama";
  config.layers = sizes.layers.value_or(found->layers);
  config.width = sizes.width.value_or(found->width);
  const std::int64_t head_width = sizes.head_width.value_or(64);
  const std::int64_t usual_heads =
      sizes.width || sizes.head_width ? std::max<std::int64_t>(1, config.width / head_width) : found->heads;
  config.heads = sizes.heads.value_or(usual_heads);
  if (config.heads < 1) throw UsageError("--heads: expected a positive number, found {}", config.heads);
  if (!sizes.head_width && config.width % config.heads != 0)
    throw UsageError("{} heads do not divide a width of {} (set --heads, or --head-width)", config.heads, config.width);
  config.head_width = sizes.head_width.value_or(config.width / config.heads);
  config.kv_heads = sizes.kv_heads.value_or(config.heads);
  config.hidden = sizes.hidden.value_or(llama ? (8 * config.width / 3 + 63) / 64 * 64 : 4 * config.width);
  config.context = sizes.context.value_or(1024);
  config.vocab_size = sizes.vocab_size.value_or(llama ? 32000 : 50257);
  if (llama) {
    config.norm = Norm::rms;
    config.biases = false;
    config.gated_mlp = true;
    config.activation = Activation::silu;
    config.tied_head = false;
    config.position = Position::rope;
  }
  return config;
}

Config with_sizes(Config config, const Sizes& sizes) {
  config.layers = sizes.layers.value_or(config.layers);
  config.heads = sizes.heads.value_or(config.heads);
  config.kv_heads = sizes.kv_heads.value_or(config.kv_heads);
  config.width = sizes.width.value_or(config.width);
  config.head_width = sizes.head_width.value_or(config.head_width);
  config.hidden = sizes.hidden.value_or(config.hidden);
  config.context = sizes.context.value_or(config.context);
  config.vocab_size = sizes.vocab_size.value_or(config.vocab_size);
  return config;
}

} // namespace noether::architecture
