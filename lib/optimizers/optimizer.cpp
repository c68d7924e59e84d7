// The table of optimizers: a new one is a source file of its own and a row here.
#include "optimizers/optimizer.h"

namespace noether::optimizers {

const std::vector<Optimizer>& all_optimizers() {
  // Defaults are those of the published runs (the method note, section 3); what is not named keeps Hyperparameters'
  // own.
  static const std::vector<Optimizer> table = {
      {"adamw",
       {"momentum", "second_moment"},
       {"beta1", "beta2", "epsilon"},
       {.lr = 1e-4, .weight_decay = 0.01},
       adamw_step<float>,
       adamw_step<double>},
      {"sgdm", {"momentum"}, {"momentum", "nesterov"}, {.lr = 0.03}, sgdm_step<float>, sgdm_step<double>},
      {"ecd", {"momentum"}, {"eta", "f0", "nu", "per-tensor"}, {.lr = 1}, ecd_step<float>, ecd_step<double>},
      {"ecdsep",
       {"momentum"},
       {"eta", "f0", "nu", "s", "delta-energy"},
       {.lr = 0.1, .eta = 1.5, .f0 = 2},
       ecdsep_step<float>,
       ecdsep_step<double>},
      {"soap",
       {"momentum", "second_moment"},
       {"beta1", "beta2", "epsilon", "precondition-every", "precondition-limit", "precondition-vocabulary",
        "first-step"},
       {.lr = 3e-4, .weight_decay = 0.01, .beta1 = 0.95, .beta2 = 0.95},
       soap_step<float>,
       soap_step<double>,
       true},
  };
  return table;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : all_optimizers()) names.emplace_back(optimizer.name);
  return names;
}

const Optimizer& optimizer_of(std::string_view name) {
  for (const Optimizer& optimizer : all_optimizers())
    if (optimizer.name == name) return optimizer;
  throw UsageError("no optimizer is called {}{}; there are {}", name, did_you_mean(name, optimizer_names()),
                   fmt::join(optimizer_names(), ", "));
}

} // namespace noether::optimizers
