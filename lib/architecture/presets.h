// Architectures by name, and how the sizes that a user gives decide those that are left out.
#pragma once

#include "architecture/config.h"

#include <optional>

namespace noether::architecture {

/// The sizes of a named model. What is 0 follows from the others: see describe().
struct Preset {
  const char* name;
  const char* family; ///< "gpt2" or "llama"
  std::int64_t layers, heads, width;
};
/// "gpt2", "llama", "gpt2-124m", ...
const std::vector<Preset>& presets();
std::vector<std::string> preset_names();

/// Sizes given on the command line; what is not given comes from the preset, or from its neighbours.
struct Sizes {
  std::optional<std::int64_t> layers{}, heads{}, kv_heads{}, width{}, head_width{}, hidden{}, context{}, vocab_size{};
};

/// The configuration of `name` with these sizes. Heads, where neither is given, are as many as make a head 64 wide;
/// hidden is 4 width, or for Llama 8/3 width rounded up to a multiple of 64; key/value heads are as many as heads.
/// Throws UsageError for an unknown name (with a suggestion), or heads that do not divide the width.
Config describe(const std::string& name, const Sizes& sizes);

/// The same model with the sizes that are given in place of its own.
Config with_sizes(Config config, const Sizes& sizes);

} // namespace noether::architecture
