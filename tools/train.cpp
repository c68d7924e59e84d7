// train: moves a checkpoint along the data with an optimizer.
#include "common.h"

#include "training/train.h"

#include "base/number.h"
#include "models/memory.h"
#include "training/record.h"

namespace {

using namespace noether;

/// Every setting of the library's table becomes an option of the same name; what was given goes to `given`.
void add_settings(CLI::App& app, Common& common, nlohmann::ordered_json& given) {
  using training::SettingKind;
  for (const training::Setting& setting : training::all_settings()) {
    const std::string name(setting.name), option = "--" + name;
    if (name == "seed") { // the shared one: it may be `random`
      add_seed(app, common);
      continue;
    }
    if (setting.kind == SettingKind::flag) {
      app.add_flag_function(
          option + ",!--no-" + name, [&given, name](std::int64_t count) { given[name] = count > 0; },
          std::string(setting.help));
      continue;
    }
    if (setting.kind == SettingKind::groups) {
      app.add_option_function<std::vector<std::string>>(
             option,
             [&given, &setting, name](const std::vector<std::string>& all) {
               for (const std::string& text : all) given[name].push_back(training::parse_setting(setting, text));
             },
             std::string(setting.help))
          ->type_name("PATTERN:NAME=VALUE,...")
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      continue;
    }
    auto* added = app.add_option_function<std::string>(
        option,
        [&given, &setting, name](const std::string& text) { given[name] = training::parse_setting(setting, text); },
        std::string(setting.help));
    added->default_str(std::string(setting.shown_default));
    added->type_name(setting.choices != nullptr             ? fmt::format("{}", fmt::join(setting.choices(), "|"))
                     : setting.kind == SettingKind::weights ? "X,X,..."
                     : setting.kind == SettingKind::real    ? "X"
                                                            : "N");
  }
}

/// Of a linear transformer: what of the two-factor map's the prompts and the learning rate are.
void print_descent(const training::Plan& plan, TableWriter& table) {
  const training::Plan::Descent& descent = *plan.descent;
  const auto& moments = descent.moments;
  table.row({"parameters", plan.parameters, ""});
  table.row({"steps", static_cast<std::int64_t>(plan.steps), ""});
  table.row({"prompts", descent.prompts, ""});
  table.row({"pairs", descent.pairs, "a prompt"});
  table.row({"learning rate", descent.learning_rate, ""});
  table.row({"kappa", moments.kappa, "mean s^2"});
  table.row({"nu", moments.nu, "mean s y"});
  table.row({"floor", moments.floor, "the least loss of two factors"});
  table.row({"mu", descent.mu, "learning rate times nu"});
  table.row({"a", descent.at.a, "at the start"});
  table.row({"b", descent.at.b, "at the start"});
  table.row(
      {"nu deviation", descent.learning_rate * moments.nu_deviation, "of a prompt, as bifurcate switching takes it"});
  table.row({"kappa deviation", moments.kappa_deviation / moments.kappa, "likewise"});
}

void print_plan(const training::Plan& plan, const Common& common) {
  TextOutput output("-"); // -o is the checkpoint's, which is not written
  TableWriter table = table_writer({{"quantity"}, {"value", plan.descent ? 0 : 4}, {"unit"}}, common, output);
  if (plan.descent) {
    print_descent(plan, table);
    output.close();
    return;
  }
  const double seconds = plan.seconds_per_step * static_cast<double>(plan.steps);
  table.row({"parameters", plan.parameters, ""});
  table.row({"steps", static_cast<std::int64_t>(plan.steps), ""});
  table.row({"tokens", static_cast<std::int64_t>(plan.tokens), ""});
  table.row({"windows in the data", static_cast<std::int64_t>(plan.windows), ""});
  table.row({"passes over the data", plan.passes, ""});
  table.row({"parameters, gradients, optimizer", plan.arena_bytes, "bytes"});
  table.row({"optimizer state", plan.state_bytes, "bytes"});
  table.row({"optimizer state a parameter",
             static_cast<double>(plan.state_bytes) / static_cast<double>(plan.parameters),
             "bytes, beside the 4 of the parameter itself"});
  table.row({"peak memory, measured", plan.peak_bytes, "bytes"});
  table.row({"arithmetic", plan.flops, "FLOP"});
  table.row({"step, measured", plan.seconds_per_step, "seconds"});
  table.row({"rate", plan.flops / seconds, "FLOP/s"});
  table.row({"duration", seconds, fmt::format("seconds: {}", human_duration(seconds))});
  output.close();
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Moves a checkpoint along the data with an optimizer.", "train"};
  Common common;
  training::Request request;
  bool dry_run = false;
  std::string device = "cpu";
  std::int64_t steps = 0, valid_every = 0, save_every = 0, emit_every = 0, record_every = 10;

  app.add_option("checkpoint", request.checkpoint, "A checkpoint, or - for stdin")->type_name("CHECKPOINT")->required();
  app.add_option("tokens", request.tokens,
                 "Token files, or - for stdin; for a linear transformer a file of prompts, with --loss-on completion "
                 "JSON lines")
      ->type_name("TOKENS...")
      ->required()
      ->expected(1, std::numeric_limits<int>::max());
  add_count(app, "--steps", steps, "Steps of the whole run: a checkpoint at step 100 takes 100 more with --steps 200")
      ->default_str("those of the checkpoint's run");
  app.add_flag("--new-run", request.new_run,
               "Take the parameters alone: a new run from step 0, settings at their defaults");
  add_settings(app, common, request.given);

  app.add_option("--valid", request.valid, "A tokens file to measure the loss on, with mean biases, at the end")
      ->type_name("TOKENS");
  add_count(app, "--valid-every", valid_every, "and every N steps")->default_str("");
  auto* valid_tokens =
      add_count(app, "--valid-tokens", request.valid_tokens, "Tokens of a validation, evenly spread over the file");
  add_count(app, "--save-every", save_every, "Save to -o FILE every N steps")->default_str("");
  add_count(app, "--emit-every", emit_every, "Send a checkpoint down the pipe every N steps")->default_str("");
  app.add_flag("!--no-optimizer-state", request.optimizer_state, "Leave the optimizer's state out of what is sent");
  app.add_option("--log", request.log, "A row for each step, tab-separated; a resumed run goes on in it")
      ->type_name("FILE");
  auto* record_option =
      app.add_option_function<std::string>(
             "--record", [&](const std::string& list) { request.record_what = training::records_of(list); },
             "What to record beside the log: momentum (angular momenta), balance (of weights), norms, logits (the "
             "largest "
             "of attention); with commas between them")
          ->type_name("WHAT,...");
  auto* every_option = add_count(app, "--record-every", record_every, "Record it every N steps");
  auto* record_log_option =
      app.add_option("--record-log", request.record_log, "Where it goes: a row for each quantity, layer and head")
          ->type_name("FILE");
  app.add_flag("--dry-run", dry_run, "Say what the run would take, by four steps in memory; write nothing");
  app.add_option("--device", device, "cpu")->capture_default_str();
  add_output(app, common, "Where the checkpoint goes");
  add_zstd(app, common);
  add_threads(app, common);
  add_json(app, common);
  add_common(
      app, common,
      "A run that is stopped or killed goes on from -o FILE when the same line is given again, to the same bits as\n"
      "without a stop. Exit status: 0 done, 1 failed, 2 misuse, 3 diverged, 75 stopped by a signal and saved.\n"
      "Example: noether train start.h5 tokens.h5 --optimizer ecd --steps 2000 -o model.h5 --save-every 100\n"
      "         noether init gpt2 -t bpe.h5 | noether train - tokens.h5 --steps 500 | noether eval loss - valid.h5");

  return run_tool(app, argc, argv, common, [&] {
    if (device != "cpu") {
      if (device != "cuda" && !device.starts_with("cuda:"))
        throw UsageError("--device: expected cpu or cuda, found {}", device);
      throw Error("--device {}: this build computes on the CPU only (no CUDA kernels in it)", device);
    }
    if (common.json && !dry_run) throw UsageError("--json has no effect without --dry-run");
    if (valid_tokens->count() > 0 && request.valid.empty())
      throw UsageError("--valid-tokens has no effect without --valid");
    if (record_option->count() > 0 && record_log_option->count() == 0)
      throw UsageError("--record needs --record-log FILE to write to");
    for (const CLI::Option* option : {every_option, record_log_option})
      if (option->count() > 0 && record_option->count() == 0)
        throw UsageError("{} has no effect without --record", option->get_name());
    request.record_every = static_cast<std::uint64_t>(record_every);
    if (app.count("--seed") > 0) request.given["seed"] = common.seed;
    if (steps > 0) request.steps = static_cast<std::uint64_t>(steps);
    request.valid_every = static_cast<std::uint64_t>(valid_every);
    request.save_every = static_cast<std::uint64_t>(save_every);
    request.emit_every = static_cast<std::uint64_t>(emit_every);
    request.output = common.output;
    request.zstd_level = common.zstd_level;
    request.threads = common.thread_count();
    request.record = provenance_record(common, false);
    models::keep_freed_memory();
    Reporter reporter(common.program, common.verbosity(), common.progress_mode());
    if (dry_run)
      print_plan(training::plan(request, reporter), common);
    else
      training::train(request, reporter);
  });
}
