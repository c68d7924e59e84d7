// How long one step of an optimizer takes, on constant gradients in the tensors of a preset.
// Usage: optimizer_bench OPTIMIZER STEPS THREADS [PRESET]. Prints the seconds of each step, and last the bytes of state
// a parameter.
#include "architecture/presets.h"
#include "base/random.h"
#include "training/trainer.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace noether;

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string optimizer = argv[1], preset = argc > 4 ? argv[4] : "gpt2-124m";
  const int steps = std::atoi(argv[2]), threads = std::atoi(argv[3]);
  at::set_num_threads(threads);
  const architecture::Config config = architecture::describe(preset, {});
  architecture::Checkpoint checkpoint = architecture::initialise(config, 0, threads);
  architecture::Arena gradients(checkpoint.parameters.size());
  Random(1, Purpose::kSample).fill_normal(gradients.data(), 0, static_cast<std::uint64_t>(gradients.size()), 0, 1e-3);
  const training::Settings settings = training::settings_of(
      training::resolve_settings({{"optimizer", optimizer}}, {},
                                 {.steps = 100, .model_context = config.context, .digests = {"none"}}),
      "bench");
  const std::vector<training::Part> parts = training::parts_of(checkpoint.layout, settings);
  const std::vector<optimizers::Arena<float>> arenas = training::arenas_of(checkpoint, gradients, parts);
  for (int i = 0; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    settings.optimizer->step(arenas[0], parts[0].hyperparameters,
                             {.taken = static_cast<std::uint64_t>(i),
                              .step = static_cast<std::uint64_t>(i),
                              .loss = 10,
                              .threads = threads});
    fmt::print("{}\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::fflush(stdout);
  }
  fmt::print("{}\n", static_cast<double>(training::state_bytes(parts)) / static_cast<double>(gradients.size()));
}
