#include "training/descend.h"

#include "base/error.h"
#include "base/random.h"
#include "regression/linear_transformer.h"
#include "training/log.h"
#include "training/signals.h"
#include "training/state.h"

#include <algorithm>
#include <cmath>

namespace noether::training {
namespace {

using regression::LinearTransformer;

constexpr double kLearningRate = 0.1;

/// Where a run is, as its checkpoints say.
struct DescentState {
  std::uint64_t step = 0, steps = 0;
  std::string origin; ///< digest of the checkpoint that step 0 began from
  std::vector<Phase> phases;
};

struct Descent {
  regression::LinearCheckpoint checkpoint;
  regression::Prompts prompts;
  DescentState state;
  double learning_rate = 0;
  std::int64_t batch = 0; ///< prompts a step, drawn with replacement; 0: all of them, each once
  std::uint64_t seed = 0;
};

/// Every digit of what an orbit can be gone on with.
std::vector<Column> log_columns() {
  return {{"step"},         {"loss", 0}, {"learning_rate"}, {"gradient_norm"}, {"value", 0},
          {"key_query", 0}, {"beside"},  {"a", 0},          {"b", 0},          {"e", 0}};
}

Json to_json(const DescentState& state) {
  Json phases = Json::array();
  for (const auto& phase : state.phases) phases.push_back({{"from", phase.from}, {"settings", phase.settings}});
  return {{"step", state.step}, {"steps", state.steps}, {"origin", state.origin}, {"phases", phases}};
}

DescentState state_of(const Json& json, const std::string& name) try {
  DescentState state{.step = json.at("step").get<std::uint64_t>(),
                     .steps = json.at("steps").get<std::uint64_t>(),
                     .origin = json.at("origin").get<std::string>(),
                     .phases = {}};
  for (const Json& phase : json.at("phases"))
    state.phases.push_back({phase.at("from").get<std::uint64_t>(), phase.at("settings")});
  if (state.phases.empty()) throw Error("{}: its training state has no settings", name);
  return state;
} catch (const Json::exception&) {
  throw Error("{}: its training state is not whole", name);
}

/// What would change nothing is refused.
void check(const Request& request) {
  for (const auto& [name, value] : request.given.items())
    if (name != "lr" && name != "batch" && name != "seed")
      throw UsageError("--{} has no effect on a linear transformer, which moves by plain gradient descent", name);
  if (!request.valid.empty()) throw UsageError("--valid has no effect on a linear transformer");
  if (request.record_what != 0) throw UsageError("--record has no effect on a linear transformer");
  if (!request.optimizer_state) throw UsageError("--no-optimizer-state has no effect: gradient descent has no state");
  if (request.tokens.size() != 1)
    throw UsageError("expected one file of prompts for a linear transformer, found {}", request.tokens.size());
}

/// The settings that hold from here on, in a fixed order.
Json settle(const Json& given, const Json& stored, const std::string& digest, const std::string& name) {
  Json settings{{"lr", kLearningRate}, {"batch", 0}, {"seed", 0}};
  for (const Json* source : {&stored, &given})
    for (auto& [key, value] : settings.items())
      if (source->is_object() && source->contains(key)) value = source->at(key);
  settings["data"] = digest;
  const Json &lr = settings.at("lr"), &batch = settings.at("batch"), &seed = settings.at("seed");
  if (!lr.is_number() || !(lr.get<double>() > 0) || !batch.is_number_integer() || batch.get<std::int64_t>() < 0 ||
      !seed.is_number_integer())
    throw Error("{}: the settings of its training are not whole", name);
  return settings;
}

double length(const LinearTransformer& gradient) {
  double squares = 0;
  for (const auto* part : {&gradient.value, &gradient.key_query})
    for (const double element : *part) squares += element * element;
  return std::sqrt(squares);
}

bool is_finite(const LinearTransformer& model) {
  for (const auto* part : {&model.value, &model.key_query})
    if (!std::all_of(part->begin(), part->end(), [](double x) { return std::isfinite(x); })) return false;
  return true;
}

class Session {
public:
  Session(const Request& request, Descent run, CheckpointOutput& output, StepTable* log, Reporter& reporter)
      : request_(request), run_(std::move(run)), output_(output), log_(log), reporter_(reporter),
        regression_(run_.prompts), moments_(regression_.moments()), indices_(static_cast<std::size_t>(run_.batch)) {
    store::ProvenanceRecord record = request.record;
    record.seed = run_.seed;
    record.inputs.push_back({"checkpoint", run_.checkpoint.digest});
    record.inputs.push_back({"prompts", run_.prompts.digest});
    provenance_ = store::extend_provenance({run_.checkpoint.provenance, run_.prompts.provenance}, record);
    if (output.found()) on_disk_ = fmt::format("{} is as it was", output.name());
    output.found().reset();
  }

  void run() {
    const StopSignals signals;
    const DescentState& state = run_.state;
    while (state.step < state.steps) {
      if (const std::string_view signal = StopSignals::received(); !signal.empty()) {
        write();
        output_.close();
        throw InterruptedError("stopped by {} at step {} of {}; {}", signal, state.step, state.steps,
                               output_.is_file()
                                   ? fmt::format("saved: the same line goes on from {}", output_.name())
                                   : "the checkpoint was sent: train goes on from it with the same options");
      }
      if (output_.reader_gone())
        throw Error("{}: nobody reads it any more: stopped at step {} of {}, nothing was saved (-o FILE with "
                    "--save-every would)",
                    output_.name(), state.step, state.steps);
      step();
    }
    write();
    output_.close();
    if (loss_) reporter_.finish_progress(progress());
  }

private:
  void step() {
    DescentState& state = run_.state;
    LinearTransformer& model = run_.checkpoint.model;
    const Random random(run_.seed, Purpose::kBatch, state.step);
    for (std::size_t i = 0; i < indices_.size(); ++i)
      indices_[i] = static_cast<std::int64_t>(random.below(i, static_cast<std::uint64_t>(regression_.count())));
    const double loss = regression_.loss(model, indices_, gradient_);
    loss_ = loss;
    if (log_ != nullptr) {
      const regression::Factors factors = factors_of(model);
      const maps::Point at = coordinates(model, moments_, run_.learning_rate);
      log_->row({static_cast<std::int64_t>(state.step + 1), loss, run_.learning_rate, length(gradient_), factors.value,
                 factors.key_query, factors.beside, at.a, at.b, maps::error_of(run_.learning_rate * moments_.nu, at)});
    }
    const LinearTransformer before = model;
    for (auto part : {&LinearTransformer::value, &LinearTransformer::key_query})
      for (std::size_t i = 0; i < (model.*part).size(); ++i)
        (model.*part)[i] -= run_.learning_rate * (gradient_.*part)[i];
    if (!std::isfinite(loss) || !is_finite(model)) {
      model = before;
      throw DivergedError("step {}: {}; {}", state.step + 1,
                          std::isfinite(loss) ? "the parameters are not finite" : fmt::format("the loss is {}", loss),
                          on_disk_);
    }
    ++state.step;
    auto& history = run_.checkpoint.history;
    history["step"].push_back(static_cast<double>(state.step));
    history["loss"].push_back(loss);
    const auto due = [&](std::uint64_t every) { return every > 0 && state.step % every == 0; };
    if (state.step < state.steps && (due(request_.save_every) || due(request_.emit_every)))
      write(due(request_.emit_every));
    if (state.step < state.steps && reporter_.progress_due()) reporter_.progress(progress());
  }

  std::string progress() const {
    return fmt::format("step {}/{}  loss {:.4g}", run_.state.step, run_.state.steps, *loss_);
  }

  void write(bool more = false) {
    run_.checkpoint.training = to_json(run_.state);
    output_.write(to_file(run_.checkpoint), provenance_, more);
    on_disk_ = fmt::format("{} {} step {}", output_.name(), output_.is_file() ? "holds" : "was sent", run_.state.step);
  }

  const Request& request_;
  Descent run_;
  CheckpointOutput& output_;
  StepTable* log_;
  Reporter& reporter_;
  regression::Regression regression_;
  regression::Regression::Moments moments_;
  std::vector<std::int64_t> indices_; ///< of a step's batch; empty: all prompts
  LinearTransformer gradient_;
  std::optional<double> loss_;
  std::vector<std::string> provenance_;
  std::string on_disk_ = "nothing had been saved";
};

/// Reads the inputs, and settles what the run goes on with: what was given, else what the checkpoint's run had, else
/// the defaults. output: may hold a point on the way of this very run, which is gone on from.
Descent prepare(const Request& request, const store::FileReader& checkpoint,
                const std::vector<std::optional<store::FileReader>>& data, CheckpointOutput* output,
                Reporter& reporter) {
  check(request);
  Descent run;
  run.prompts = regression::read_prompts(*data.front());
  run.checkpoint = regression::read_linear_checkpoint(checkpoint);
  regression::check_fit(run.prompts, run.checkpoint);
  DescentState& state = run.state;
  if (request.new_run) run.checkpoint.training = nullptr;
  if (run.checkpoint.training.is_null()) {
    run.checkpoint.history.clear();
    state.origin = run.checkpoint.digest;
  } else {
    state = state_of(run.checkpoint.training, run.checkpoint.name);
  }
  if (request.steps) state.steps = *request.steps;
  if (state.steps == 0) throw UsageError("give --steps N: how many steps the run is to have");
  if (state.step > state.steps)
    throw UsageError("--steps {}: {} is at step {} already; --steps counts from the beginning of the run", state.steps,
                     run.checkpoint.name, state.step);
  const Json stored = state.phases.empty() ? Json() : state.phases.back().settings;
  const Json now = settle(request.given, stored, run.prompts.digest, run.checkpoint.name);
  if (stored != now) {
    if (!stored.is_null())
      reporter.message(fmt::format("from step {} on: {}", state.step, fmt::join(differences(stored, now), ", ")));
    if (!state.phases.empty() && state.phases.back().from == state.step) state.phases.pop_back();
    state.phases.push_back({state.step, now});
  }
  run.learning_rate = now.at("lr").get<double>();
  run.batch = now.at("batch").get<std::int64_t>();
  run.seed = now.at("seed").get<std::uint64_t>();

  // A file that is a point on the way of this very run is gone on from.
  if (output == nullptr || !output->found()) return run;
  const store::FileReader& file = *output->found();
  if (regression::is_linear_transformer(file)) {
    regression::LinearCheckpoint there = regression::read_linear_checkpoint(file);
    if (!there.training.is_null()) {
      const DescentState found = state_of(there.training, there.name);
      if (found.origin == state.origin && found.phases == state.phases && found.step >= state.step &&
          found.step <= state.steps) {
        if (found.step == state.step) return run;
        state.step = found.step;
        run.checkpoint = std::move(there);
        reporter.message(fmt::format("{} is at step {} of this run: going on from there", file.name(), state.step));
        return run;
      }
    }
  }
  if (file.digest() != run.checkpoint.digest)
    reporter.message(fmt::format("{} holds something else, not a step of this run: it will be replaced", file.name()));
  return run;
}

Plan::Descent where(const Descent& run) {
  const auto moments = regression::Regression(run.prompts).moments();
  return {.prompts = run.prompts.count,
          .pairs = run.prompts.pairs,
          .learning_rate = run.learning_rate,
          .mu = run.learning_rate * moments.nu,
          .at = coordinates(run.checkpoint.model, moments, run.learning_rate),
          .moments = moments};
}

std::string introduction(const Descent& run) {
  const auto several = [](std::int64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  return fmt::format("linear-transformer, {}, {}{} of {}, steps {} to {}, learning rate {:g}: mu {:.6g}",
                     run.checkpoint.model.matrices ? "both matrices" : "two factors",
                     run.batch > 0 ? fmt::format("{} of ", run.batch) : "", several(run.prompts.count, "prompt"),
                     several(run.prompts.pairs, "pair"), run.state.step, run.state.steps, run.learning_rate,
                     where(run).mu);
}

} // namespace

void descend(const Request& request, const store::FileReader& checkpoint,
             const std::vector<std::optional<store::FileReader>>& data, CheckpointOutput& output, Reporter& reporter) {
  std::optional<StepTable> log;
  if (!request.log.empty()) log.emplace(request.log, log_columns(), "the log of a linear transformer's training");
  Descent run = prepare(request, checkpoint, data, &output, reporter);
  if (run.state.step == run.state.steps) {
    reporter.message(fmt::format("step {} of {}: already done", run.state.step, run.state.steps));
    if (output.is_file() && output.found() && output.found()->digest() == run.checkpoint.digest) return;
  }
  reporter.message(introduction(run));
  if (log) log->begin(run.state.step);
  Session(request, std::move(run), output, log ? &*log : nullptr, reporter).run();
}

Plan plan_descent(const Request& request, const store::FileReader& checkpoint,
                  const std::vector<std::optional<store::FileReader>>& data, Reporter& reporter) {
  const Descent run = prepare(request, checkpoint, data, nullptr, reporter);
  const LinearTransformer& model = run.checkpoint.model;
  Plan plan{.parameters = static_cast<std::int64_t>(model.value.size() + model.key_query.size()),
            .steps = run.state.steps - run.state.step};
  plan.descent = where(run);
  return plan;
}

} // namespace noether::training
