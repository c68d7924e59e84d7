// What tables say of a checkpoint.
#pragma once

#include "architecture/checkpoint.h"
#include "base/table.h"

namespace noether {

/// The step of the training run; 0 for a fresh checkpoint. state: what it keeps of its training.
inline Cell step_of(const nlohmann::ordered_json& state) {
  const auto found = state.find("step");
  if (state.is_object() && found != state.end() && found->is_number_integer()) return found->get<std::int64_t>();
  return std::int64_t{0};
}
inline Cell step_of(const architecture::Checkpoint& checkpoint) { return step_of(checkpoint.training.state); }

} // namespace noether
