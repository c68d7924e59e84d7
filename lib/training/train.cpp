// The run: inputs checked and opened, the state to begin from, the loop, and what is saved when. Every rare end of a
// run (signal, divergence, floor, a reader that is gone) passes through the same few lines as the ordinary one.
#include "training/train.h"

#include "base/error.h"
#include "base/number.h"
#include "training/batch.h"
#include "training/checkpoint_output.h"
#include "training/descend.h"
#include "training/log.h"
#include "training/signals.h"
#include "training/trainer.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace noether::training {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A run that is ready to take its next step.
struct Run {
  architecture::Checkpoint checkpoint;
  std::vector<text::TokenFile> files;
  std::optional<text::TokenFile> valid;
  std::vector<Examples> examples; ///< in place of files, with --loss-on completion
  std::optional<Examples> valid_examples;
  State state;
  Settings settings;
};

void check_request(const Request& request, const CheckpointOutput& output) {
  if (request.save_every > 0 && !output.is_file())
    throw UsageError("--save-every has no effect without -o FILE: there is nothing to replace in {}", output.name());
  if (request.emit_every > 0 && !output.takes_several())
    throw UsageError(
        "--emit-every needs a pipe: of several checkpoints in the file {} readers would see the first only",
        output.name());
  if (!request.optimizer_state && output.is_file())
    throw UsageError("--no-optimizer-state has no effect with -o FILE, which must be able to go on");
  if (request.log == "-") throw UsageError("--log -: stdout is the checkpoint's; name a file");
  if (request.record_log == "-") throw UsageError("--record-log -: stdout is the checkpoint's; name a file");
  if (request.valid.empty() && request.valid_every > 0) throw UsageError("--valid-every has no effect without --valid");
}

/// What the request names, opened.
struct Inputs {
  std::optional<store::FileReader> checkpoint, valid;
  std::vector<std::optional<store::FileReader>> data;
  std::vector<Examples> examples; ///< in place of data and valid, with --loss-on completion
  std::optional<Examples> valid_examples;
};

bool asks_for_completions(const Request& request) {
  const auto found = request.given.find("loss-on");
  return found != request.given.end() && *found == "completion";
}

/// Opens everything: what has a name first, so that a wrong one ends a pipeline in its first second, and then stdin.
Inputs open_inputs(const Request& request) {
  const auto standard = std::count(request.tokens.begin(), request.tokens.end(), "-") +
                        (request.checkpoint == "-" ? 1 : 0) + (request.valid == "-" ? 1 : 0);
  if (standard > 1) throw UsageError("only one input can be stdin (-)");
  Inputs inputs;
  const bool completions = asks_for_completions(request);
  if (completions)
    inputs.examples.resize(request.tokens.size());
  else
    inputs.data.resize(request.tokens.size());
  for (const bool named : {true, false}) {
    const auto open = [&](const std::string& path, store::Kind kind, std::optional<store::FileReader>& file) {
      if ((path != "-") == named) file = store::open_one(path, kind);
    };
    open(request.checkpoint, store::kCheckpointFile, inputs.checkpoint);
    for (std::size_t i = 0; i < inputs.examples.size(); ++i)
      if ((request.tokens[i] != "-") == named) inputs.examples[i] = read_examples(request.tokens[i]);
    for (std::size_t i = 0; i < inputs.data.size(); ++i) {
      if ((request.tokens[i] != "-") != named) continue;
      inputs.data[i] = store::open_one(request.tokens[i]);
      // Which of the two it has to be, the checkpoint says.
      if (inputs.data[i]->kind() != store::kTensorsFile.name) inputs.data[i]->expect(store::kTokensFile);
    }
    if (!request.valid.empty() && !completions) open(request.valid, store::kTokensFile, inputs.valid);
    if (!request.valid.empty() && completions && (request.valid != "-") == named)
      inputs.valid_examples = read_examples(request.valid);
  }
  return inputs;
}

void read_inputs(const Request& request, Inputs inputs, Run& run) {
  for (auto& file : inputs.data) {
    file->expect(store::kTokensFile);
    run.files.emplace_back(std::move(*file));
  }
  if (inputs.valid) run.valid.emplace(std::move(*inputs.valid));
  run.examples = std::move(inputs.examples);
  run.valid_examples = std::move(inputs.valid_examples);
  run.checkpoint = architecture::read_checkpoint(*inputs.checkpoint, !request.new_run);
  if (!run.examples.empty()) {
    if (run.checkpoint.tokenizer) return;
    throw Error("{}: it has no tokenizer to read {} with", run.checkpoint.name, run.examples.front().name);
  }

  const text::Tokenizer* tokenizer =
      run.checkpoint.tokenizer ? &*run.checkpoint.tokenizer : &run.files.front().tokenizer();
  for (const text::TokenFile& file : run.files)
    check_tokenizer(file, run.checkpoint.tokenizer ? tokenizer : nullptr, run.checkpoint.config.vocab_size,
                    run.checkpoint.name);
  // Without one in the checkpoint, all must agree with the first file's, which the checkpoint takes over.
  for (const text::TokenFile& file : run.files) check_tokenizer(file, tokenizer, 0, run.files.front().name());
  if (run.valid)
    check_tokenizer(*run.valid, tokenizer, 0,
                    run.checkpoint.tokenizer ? run.checkpoint.name : run.files.front().name());
  if (!run.checkpoint.tokenizer) run.checkpoint.tokenizer = *tokenizer;
}

/// Turns texts into tokens; says where some do not fit.
void encode_examples(Run& run, Reporter& reporter) {
  const auto encode_one = [&](Examples& examples) {
    encode(examples, *run.checkpoint.tokenizer, run.settings.context);
    if (examples.truncated > 0)
      reporter.message(fmt::format(
          "{}: {} of {} examples are longer than the context of {}, that of line {} first: the "
          "beginnings of their prompts are left out",
          examples.name, examples.truncated, examples.examples.size(), run.settings.context, examples.first_truncated));
  };
  for (Examples& examples : run.examples) encode_one(examples);
  if (run.valid_examples) encode_one(*run.valid_examples);
}

Data data_of(const Run& run) {
  return run.examples.empty() ? Data(run.files, run.settings) : Data(run.examples, run.settings);
}

/// The optimizer begins anew when it is another one, or when its state was left out of the file.
void check_optimizer_state(Run& run, const std::string& before, Reporter& reporter) {
  const bool other = before != run.settings.optimizer->name;
  if (run.state.optimizer_steps == 0 ||
      (!other && has_state(run.checkpoint, parts_of(run.checkpoint.layout, run.settings))))
    return;
  const std::string_view name = run.settings.optimizer->name;
  reporter.message(
      other ? fmt::format("the optimizer was {}: {} begins with a fresh state", before, name)
      : run.checkpoint.training.optimizer.empty()
          ? fmt::format("{}: no optimizer state in it: {} begins with a fresh one", run.checkpoint.name, name)
          : fmt::format("{}: its optimizer state is that of other groups: all begin with a fresh one",
                        run.checkpoint.name));
  auto& training = run.checkpoint.training;
  training.optimizer.clear();
  training.holders.clear();
  training.sides.clear();
  run.state.optimizer_steps = 0;
}

/// The state and settings that the run goes on with, out of the checkpoint's and of what was given; says what changed.
void settle(const Request& request, Run& run, Reporter& reporter) {
  architecture::Checkpoint& checkpoint = run.checkpoint;
  State& state = run.state;
  if (request.new_run || checkpoint.training.state.is_null()) checkpoint.training = {};
  if (!checkpoint.training.state.is_null())
    state = state_from_json(checkpoint.training.state, checkpoint.name);
  else
    state.origin = checkpoint.digest;
  if (request.steps) state.steps = *request.steps;
  if (state.steps == 0) throw UsageError("give --steps N: how many steps the run is to have");
  if (state.step > state.steps)
    throw UsageError("--steps {}: {} is at step {} already; --steps counts from the beginning of the run", state.steps,
                     checkpoint.name, state.step);

  Surroundings surroundings{.steps = state.steps, .model_context = checkpoint.config.context, .digests = {}};
  for (const text::TokenFile& file : run.files) surroundings.digests.push_back(file.file().digest());
  for (const Examples& examples : run.examples) surroundings.digests.push_back(examples.digest);
  const Json stored = state.phases.empty() ? Json() : state.phases.back().settings;
  const Json now = resolve_settings(request.given, stored, surroundings);
  run.settings = settings_of(now, checkpoint.name);
  if (stored != now) {
    if (!stored.is_null())
      reporter.message(fmt::format("from step {} on: {}", state.step, fmt::join(differences(stored, now), ", ")));
    if (!state.phases.empty() && state.phases.back().from == state.step) state.phases.pop_back();
    state.phases.push_back({state.step, now});
  }
  if (!stored.is_null()) check_optimizer_state(run, stored.at("optimizer").get<std::string>(), reporter);
}

/// When the output file is a point on the way of this very run, goes on from there.
void catch_up(Run& run, CheckpointOutput& output, Reporter& reporter) {
  if (!output.found()) return;
  store::FileReader& file = *output.found();
  const Json training = file.has("/training") ? Json::parse(file.text("/training"), nullptr, false) : Json();
  if (training.is_object()) {
    State found = state_from_json(training, file.name());
    if (comes_through(run.state, found)) {
      if (found.step == run.state.step) return;
      architecture::Checkpoint checkpoint = architecture::read_checkpoint(file, true);
      if (has_state(checkpoint, parts_of(checkpoint.layout, run.settings))) {
        run.checkpoint = std::move(checkpoint);
        found.steps = run.state.steps;
        run.state = std::move(found);
        reporter.message(fmt::format("{} is at step {} of this run: going on from there", file.name(), run.state.step));
        return;
      }
    }
  }
  if (file.digest() != run.checkpoint.digest)
    reporter.message(fmt::format("{} holds something else, not a step of this run: it will be replaced", file.name()));
}

Run prepare(const Request& request, Inputs inputs, CheckpointOutput* output, Reporter& reporter) {
  Run run;
  read_inputs(request, std::move(inputs), run);
  settle(request, run, reporter);
  encode_examples(run, reporter);
  if (output != nullptr) catch_up(run, *output, reporter);
  return run;
}

std::string introduction(const Run& run) {
  const Settings& s = run.settings;
  std::string groups;
  for (const Group& group : s.groups)
    groups +=
        fmt::format("; {}: {}, learning rate {:g}", group.parameters, group.optimizer->name, group.hyperparameters.lr);
  return fmt::format(
      "{}, {} parameters, steps {} to {}, {} each, {}, learning rate {:g} {}{}", run.checkpoint.config.family,
      human_count(static_cast<double>(run.checkpoint.parameters.size())), run.state.step, run.state.steps,
      run.examples.empty() ? fmt::format("{} x {} tokens", s.batch, s.context) : fmt::format("{} examples", s.batch),
      s.optimizer->name, s.hyperparameters.lr, describe(s.schedule, s.schedule_steps), groups);
}

/// The loop's surroundings: what is written, when, and what is said.
class Session {
public:
  Session(const Request& request, Run& run, CheckpointOutput& output, TrainingLog* log, StepTable* record_log,
          Reporter& reporter)
      : request_(request), run_(run), output_(output), log_(log), record_log_(record_log), reporter_(reporter),
        data_(data_of(run)), trainer_(run.checkpoint, run.settings, request.threads), first_step_(run.state.step) {
    if (run.valid) valid_.emplace(validation_batch(*run.valid, run.settings.context, request.valid_tokens));
    if (run.valid_examples) valid_.emplace(validation_batch(*run.valid_examples, request.valid_tokens));
    std::vector<std::vector<std::string>> before{run.checkpoint.provenance};
    store::ProvenanceRecord record = request.record;
    record.seed = run.settings.seed;
    record.inputs.push_back({"checkpoint", run.checkpoint.digest});
    for (const text::TokenFile& file : run.files) {
      before.push_back(file.file().provenance());
      record.inputs.push_back({"tokens", file.file().digest()});
    }
    for (const Examples& examples : run.examples) record.inputs.push_back({"text", examples.digest});
    provenance_ = store::extend_provenance(before, record);
    if (output.found()) on_disk_ = fmt::format("{} is as it was", output.name());
    output.found().reset(); // or the disk would keep it beside each new one
  }

  void run() {
    const StopSignals signals;
    start_ = Clock::now();
    while (run_.state.step < run_.state.steps) {
      if (const std::string_view signal = StopSignals::received(); !signal.empty()) stop(signal);
      if (output_.reader_gone())
        throw Error("{}: nobody reads it any more: stopped at step {} of {}, nothing was saved (-o FILE with "
                    "--save-every would)",
                    output_.name(), run_.state.step, run_.state.steps);
      step();
    }
    finish();
  }

private:
  void step() {
    const Clock::time_point begin = Clock::now();
    const Batch batch = data_.batch(run_.state.windows, run_.settings.batch);
    StepReport report;
    try {
      report = trainer_.step(run_.state, batch);
    } catch (const optimizers::FloorError& error) {
      write();
      output_.close();
      throw optimizers::FloorError("{}; {}", error.what(), on_disk_);
    } catch (const DivergedError& error) {
      throw DivergedError("{}; {}", error.what(), on_disk_);
    }
    const double seconds = seconds_since(begin);
    watch_floor(report);
    if (report.fallbacks > 0) {
      fallbacks_ += report.fallbacks;
      reporter_.message(
          fmt::format("step {}: {} of SOAP's factorisations failed in float32 and were done in float64 ({} so "
                      "far)",
                      run_.state.step, report.fallbacks, fallbacks_));
    }
    if (run_.state.step == first_step_ + 1) // the first step makes memory ready: it says little of the others
      rate_start_ = Clock::now();
    else
      rate_tokens_ += batch.counted;
    auto& history = run_.checkpoint.training.history;
    history["step"].push_back(static_cast<double>(run_.state.step));
    history["loss"].push_back(report.loss);

    const std::uint64_t at = run_.state.step;
    const auto due = [&](std::uint64_t every) { return every > 0 && at % every == 0; };
    std::optional<double> valid_loss;
    if (valid_ && (due(request_.valid_every) || at == run_.state.steps)) {
      valid_loss = trainer_.validate(*valid_);
      reporter_.message(fmt::format("step {}: validation loss {:.4f}", at, *valid_loss));
    }
    if (log_ != nullptr)
      log_->row({.step = at,
                 .tokens = run_.state.tokens,
                 .loss = report.loss,
                 .smoothed_loss = run_.state.smoothed_loss,
                 .learning_rate = report.learning_rate,
                 .gradient_norm = report.gradient_norm,
                 .seconds = log_->seconds() + seconds_since(start_),
                 .tokens_per_second = static_cast<double>(batch.counted) / seconds,
                 .valid_loss = valid_loss});
    if (record_log_ != nullptr && due(request_.record_every))
      trainer_.record(request_.record_what, run_.state, batch, [&](const auto& cells) { record_log_->row(cells); });
    if (at < run_.state.steps && (due(request_.save_every) || due(request_.emit_every)))
      write(due(request_.emit_every));
    if (at < run_.state.steps && reporter_.progress_due()) reporter_.progress(progress()); // finish() shows the last
  }

  /// Says when F0 has moved, and once when the loss is near one that does not.
  void watch_floor(const StepReport& report) {
    if (report.floor)
      reporter_.detail(fmt::format("step {}: F0 is {:.6g} from here on", run_.state.step, *report.floor));
    if (run_.settings.f0_fraction || report.distance <= 0 || report.distance > kNear * report.loss || near_floor_)
      return;
    near_floor_ = true;
    reporter_.message(
        fmt::format("step {}: the loss, {:.4g}, is near F0 = {:g}, where steps grow as 1 / (loss - F0) and "
                    "the run ends: --f0 auto, or a smaller one, would leave room",
                    run_.state.step, report.loss, report.loss - report.distance));
  }

  std::string progress() const {
    const State& s = run_.state;
    const double rate = rate_tokens_ == 0 ? 0 : static_cast<double>(rate_tokens_) / seconds_since(rate_start_);
    std::string text = fmt::format("step {}/{}  loss {:.3f}", s.step, s.steps, s.smoothed_loss);
    if (rate <= 0) return text;
    text += fmt::format("  {} tokens/s", human_count(rate));
    const double left =
        static_cast<double>(s.steps - s.step) * static_cast<double>(run_.settings.batch) * data_.targets_a_window();
    return left > 0 ? text + fmt::format("  {} left", human_duration(left / rate)) : text;
  }

  /// Saves, or sends down the pipe.
  void write(bool more = false) {
    // A step may have overflowed without a trace in its own loss: the file must stay one that can be gone on from.
    if (const std::string name = trainer_.not_finite(); !name.empty())
      throw DivergedError("step {}: {} is not finite; {}", run_.state.step, name, on_disk_);
    run_.checkpoint.training.state = to_json(run_.state);
    output_.write(run_.checkpoint, provenance_, request_.optimizer_state, more);
    on_disk_ = fmt::format("{} {} step {}", output_.name(), output_.is_file() ? "holds" : "was sent", run_.state.step);
  }

  void finish() {
    write();
    output_.close();
    reporter_.finish_progress(progress());
  }

  [[noreturn]] void stop(std::string_view signal) {
    write();
    output_.close();
    const State& s = run_.state;
    throw InterruptedError("stopped by {} at step {} of {}; {}", signal, s.step, s.steps,
                           output_.is_file() ? fmt::format("saved: the same line goes on from {}", output_.name())
                                             : "the checkpoint was sent: train goes on from it with the same options");
  }

  const Request& request_;
  Run& run_;
  CheckpointOutput& output_;
  TrainingLog* log_;
  StepTable* record_log_;
  Reporter& reporter_;
  Data data_;
  Trainer trainer_;
  std::optional<Batch> valid_;
  std::vector<std::string> provenance_;
  std::string on_disk_ = "nothing had been saved";
  std::uint64_t first_step_;
  Clock::time_point start_, rate_start_;
  std::int64_t rate_tokens_ = 0;
  int fallbacks_ = 0;
  static constexpr double kNear = 0.05; ///< of the loss
  bool near_floor_ = false;
};

} // namespace

void train(Request request, Reporter& reporter) {
  CheckpointOutput output(request.output, request.zstd_level);
  check_request(request, output);
  Inputs inputs = open_inputs(request);
  if (regression::is_linear_transformer(*inputs.checkpoint)) {
    descend(request, *inputs.checkpoint, inputs.data, output, reporter);
    return;
  }
  std::optional<TrainingLog> log;
  if (!request.log.empty()) log.emplace(request.log);
  std::optional<StepTable> record_log;
  if (request.record_what != 0)
    record_log.emplace(request.record_log, record_columns(), "what a training run recorded");

  Run run = prepare(request, std::move(inputs), &output, reporter);
  if (run.state.step == run.state.steps) {
    reporter.message(fmt::format("step {} of {}: already done", run.state.step, run.state.steps));
    // A pipe still wants its checkpoint, and a file that is not there yet too; one that is at this step stays.
    if (output.is_file() && output.found() && output.found()->digest() == run.checkpoint.digest) return;
  }
  keep_references(request.record_what, run.checkpoint);
  Session session(request, run, output, log ? &*log : nullptr, record_log ? &*record_log : nullptr,
                  reporter); // the last of the checks are in it
  reporter.message(introduction(run));
  if (log) log->begin(run.state.step);
  if (record_log) record_log->begin(run.state.step);
  session.run();
}

Plan plan(Request request, Reporter& reporter) {
  Inputs inputs = open_inputs(request);
  if (regression::is_linear_transformer(*inputs.checkpoint))
    return plan_descent(request, *inputs.checkpoint, inputs.data, reporter);
  Run run = prepare(request, std::move(inputs), nullptr, reporter);
  Plan plan{.parameters = run.checkpoint.parameters.size(), .steps = run.state.steps - run.state.step};
  const Data data = data_of(run);
  Trainer trainer(run.checkpoint, run.settings, request.threads);
  std::vector<double> seconds;
  for (int i = 0; i < 4; ++i) {
    const Clock::time_point begin = Clock::now();
    trainer.step(run.state, data.batch(run.state.windows, run.settings.batch));
    if (i > 0) seconds.push_back(seconds_since(begin));
  }
  std::sort(seconds.begin(), seconds.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double drawn = static_cast<double>(plan.steps) * static_cast<double>(run.settings.batch);
  double tokens_in_files = 0;
  for (const text::TokenFile& file : run.files) tokens_in_files += static_cast<double>(file.size() - 1);
  for (const Examples& file : run.examples) tokens_in_files += static_cast<double>(file.inputs());
  plan.windows = data.windows().count();
  const double tokens_a_window = run.examples.empty() ? static_cast<double>(run.settings.context)
                                                      : tokens_in_files / static_cast<double>(plan.windows);
  plan.tokens = static_cast<std::uint64_t>(std::llround(drawn * tokens_a_window));
  plan.passes = drawn * tokens_a_window / tokens_in_files;
  plan.arena_bytes = trainer.bytes();
  plan.state_bytes = trainer.state_bytes();
  plan.peak_bytes = usage.ru_maxrss * 1024;
  plan.flops = flops_per_token(run.checkpoint.config, run.settings.context).train * static_cast<double>(plan.tokens);
  plan.seconds_per_step = seconds[1];
  return plan;
}

} // namespace noether::training
