// What decides the numbers of a run, under the names that its options have: kept as JSON, so that the command line, a
// checkpoint and a message about a change all speak of the same things.
#pragma once

#include "models/linear.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedule.h"
#include "training/windows.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace noether::training {

using Json = nlohmann::ordered_json;

enum class SettingKind { word, real, count, flag, weights, groups };

/// One row of the table of settings.
struct Setting {
  std::string_view name; ///< of the option, without its two hyphens, and of the key in files
  SettingKind kind;
  std::string_view help;
  std::string_view shown_default; ///< for --help
  double least = 0, most = 0;     ///< of a number
  bool open = false;              ///< `least` itself is not allowed
  std::string_view word = {};     ///< that is taken in place of a number
  std::vector<std::string> (*choices)() = nullptr;
};
const std::vector<Setting>& all_settings();

/// A value as it was given; of groups one of them. Throws UsageError: "--lr: expected a finite number above 0, found
/// nan".
Json parse_setting(const Setting& setting, const std::string& text);

/// What else a full set of settings depends on.
struct Surroundings {
  std::uint64_t steps = 0;          ///< of the whole run
  std::int64_t model_context = 0;   ///< --context cannot be longer
  std::vector<std::string> digests; ///< of the token files
};

/// The settings of a run: those given, else those of the run that the checkpoint comes from (null: none), else the
/// defaults. Only settings that have an effect are in it. Those of another optimizer are not taken over. Throws
/// UsageError for one that was given and has no effect: "--eta has no effect with --optimizer adamw".
Json resolve_settings(const Json& given, const Json& stored, const Surroundings& surroundings);

/// Parameters that have settings of their own.
struct Group {
  std::string parameters; ///< a pattern of names, as the shell's, where * also matches /
  const optimizers::Optimizer* optimizer = nullptr;
  optimizers::Hyperparameters hyperparameters;
  bool decay_matrices_only = false;
};

/// The same as plain data.
struct Settings {
  const optimizers::Optimizer* optimizer = nullptr;
  optimizers::Hyperparameters hyperparameters;
  bool decay_matrices_only = false;
  /// With --f0 auto: F0 is this part of the loss below it. Nothing: F0 is the hyperparameter.
  std::optional<double> f0_fraction;
  std::vector<Group> groups; ///< the first that matches a parameter's name counts; none: the settings above
  optimizers::Schedule schedule;
  std::uint64_t schedule_steps = 0; ///< the run's length, as far as the schedule goes by it
  std::int64_t batch = 0, accumulate = 0, context = 0;
  Order order = Order::random;
  std::vector<double> weights;
  std::uint64_t seed = 0;
  models::Precision precision = models::Precision::f32;
};
/// Throws Error naming `name` when the settings of a file are not whole.
Settings settings_of(const Json& json, const std::string& name);

/// What changed: "--lr 0.001 (was 0.0003)".
std::vector<std::string> differences(const Json& was, const Json& now);

} // namespace noether::training
