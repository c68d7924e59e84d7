// Which symmetry-breaking biases a model is evaluated with.
#pragma once

#include "models/model.h"

#include <string_view>

namespace noether::evaluation {

/// Their means, as at inference; a draw, as in training; or none at all.
enum class Biases { mean, sampled, none };
/// From the word of the command line. Throws UsageError with a suggestion.
Biases biases_of(std::string_view name);
std::string_view name_of(Biases biases);

/// The biases of (seed, step) where they are sampled. All undefined for a model that has none.
models::StepBiases step_biases(const architecture::Config& config, Biases biases, std::uint64_t seed,
                               std::uint64_t step);

} // namespace noether::evaluation
