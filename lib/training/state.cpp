#include "training/state.h"

#include "base/error.h"

namespace noether::training {

Json to_json(const State& state) {
  Json phases = Json::array();
  for (const Phase& phase : state.phases) phases.push_back({{"from", phase.from}, {"settings", phase.settings}});
  return {{"step", state.step},
          {"steps", state.steps},
          {"windows", state.windows},
          {"tokens", state.tokens},
          {"optimizer_steps", state.optimizer_steps},
          {"smoothed_loss", state.smoothed_loss},
          {"start_distance", state.start_distance},
          {"floors", state.floors},
          {"origin", state.origin},
          {"phases", phases}};
}

State state_from_json(const Json& json, const std::string& name) try {
  State state{.step = json.at("step").get<std::uint64_t>(),
              .steps = json.at("steps").get<std::uint64_t>(),
              .windows = json.at("windows").get<std::uint64_t>(),
              .tokens = json.at("tokens").get<std::uint64_t>(),
              .optimizer_steps = json.at("optimizer_steps").get<std::uint64_t>(),
              .smoothed_loss = json.at("smoothed_loss").get<double>(),
              .start_distance = json.value("start_distance", 0.0), // older files have none, and nothing that needs it
              .floors = json.value("floors", decltype(State::floors)()),
              .origin = json.at("origin").get<std::string>(),
              .phases = {}};
  for (const Json& phase : json.at("phases"))
    state.phases.push_back({phase.at("from").get<std::uint64_t>(), phase.at("settings")});
  if (state.phases.empty()) throw Error("{}: its training state has no settings", name);
  settings_of(state.phases.back().settings, name);
  return state;
} catch (const Json::exception&) {
  throw Error("{}: its training state is not whole", name);
}

bool comes_through(const State& start, const State& found) {
  // A checkpoint whose optimizer state was left out went on with a fresh one.
  const bool same_start = found.step - found.optimizer_steps == start.step - start.optimizer_steps;
  return same_start && found.origin == start.origin && found.phases == start.phases && found.step >= start.step &&
         found.step <= start.steps;
}

} // namespace noether::training
