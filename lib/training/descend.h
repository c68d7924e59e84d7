// Training of a linear transformer: plain gradient descent in float64 on prompts, all of them or a batch a step. For
// this room alone: train() comes here by the checkpoint's family.
#pragma once

#include "training/checkpoint_output.h"
#include "training/train.h"

namespace noether::training {

/// As train(): the rows of the log say the loss before their step. data: one file of prompts. Throws UsageError for a
/// setting that has no effect here.
void descend(const Request& request, const store::FileReader& checkpoint,
             const std::vector<std::optional<store::FileReader>>& data, CheckpointOutput& output, Reporter& reporter);

/// As plan().
Plan plan_descent(const Request& request, const store::FileReader& checkpoint,
                  const std::vector<std::optional<store::FileReader>>& data, Reporter& reporter);

} // namespace noether::training
