// Where a run is: what its checkpoints say of it, and when a checkpoint is a point on the way of a given command line.
#pragma once

#include "training/settings.h"

#include <cstdint>
#include <string>
#include <vector>

namespace noether::training {

/// From a step on, these settings hold.
struct Phase {
  std::uint64_t from = 0;
  Json settings;
  bool operator==(const Phase&) const = default;
};

struct State {
  std::uint64_t step = 0;            ///< steps done
  std::uint64_t steps = 0;           ///< steps in all, as asked for last
  std::uint64_t windows = 0;         ///< drawn so far: the next batch begins at this one
  std::uint64_t tokens = 0;          ///< predicted so far
  std::uint64_t optimizer_steps = 0; ///< that the optimizer's state has seen
  double smoothed_loss = 0;          ///< exponential mean with weight 0.1
  double start_distance = 0;         ///< F - F0 at the first step that the optimizer's state has seen; ECDSep's energy
  /// With --f0 auto: each F0, and the step that it holds from.
  std::vector<std::pair<std::uint64_t, double>> floors{};
  std::string origin;        ///< digest of the checkpoint that step 0 began from
  std::vector<Phase> phases; ///< the last is in force
};

Json to_json(const State& state);
/// Throws Error naming `name` when it is not whole.
State state_from_json(const Json& json, const std::string& name);

/// Whether a run that stands at `start` comes through `found`, if nothing stops it: from the same origin, with the same
/// settings at every step. Everything in a checkpoint follows from these, so going on from `found` ends in the same
/// bits.
bool comes_through(const State& start, const State& found);

} // namespace noether::training
