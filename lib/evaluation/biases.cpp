#include "evaluation/biases.h"

#include "base/choice.h"

#include <array>

namespace noether::evaluation {
namespace {
constexpr std::array kNames{"mean", "sampled", "none"};
}

Biases biases_of(std::string_view name) { return choice_of<Biases>(name, kNames, "biases"); }

std::string_view name_of(Biases biases) { return kNames[static_cast<std::size_t>(biases)]; }

models::StepBiases step_biases(const architecture::Config& config, Biases biases, std::uint64_t seed,
                               std::uint64_t step) {
  if (biases == Biases::mean) return models::mean_biases(config);
  if (biases == Biases::sampled) return models::sampled_biases(config, seed, step);
  return models::no_biases(config);
}

} // namespace noether::evaluation
