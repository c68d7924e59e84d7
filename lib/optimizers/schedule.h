// How the learning rate changes over a run: a pure function of the step, so that nothing need be stored to resume it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace noether::optimizers {

enum class ScheduleKind { constant, cosine, wsd };
std::string_view name_of(ScheduleKind kind);
std::vector<std::string> schedule_names();
ScheduleKind schedule_of(std::string_view name); ///< Throws UsageError with a suggestion.

/// Warm-up, then one of: the full rate; half a cosine wave down to final_fraction; or the full rate and, over the last
/// decay_steps, a straight line down to final_fraction (warm-up, stable, decay).
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  std::uint64_t warmup = 0; ///< steps; the first is at 1/warmup of the rate, the last at all of it
  double final_fraction =
      0; ///< what the decay comes down to where the run ends (after its last step); none for constant
  std::uint64_t decay_steps = 0; ///< only for wsd

  bool operator==(const Schedule&) const = default;
};

/// What the learning rate of step `step` (0 is the first) is multiplied by in a run of `total` steps: in [0, 1].
/// A run that is made longer is another run: the rate at the same step may be another one, by this same formula.
double lr_factor(const Schedule& schedule, std::uint64_t step, std::uint64_t total);

/// One line for people: "cosine to 0.1 of the rate at step 2000, after 100 steps of warm-up".
std::string describe(const Schedule& schedule, std::uint64_t total);

} // namespace noether::optimizers
