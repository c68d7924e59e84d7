// eval generate: text that a checkpoint writes.
#include "checkpoint_cells.h"
#include "eval/subcommands.h"

#include "evaluation/generate.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace noether {

namespace {

struct GenerateCommand {
  std::string checkpoint;
  std::vector<std::string> prompts;
  evaluation::GenerateOptions options;
  std::string biases = "mean";
  bool no_stop = false;
};

CLI::App* add_generate(CLI::App& app, Common& common, GenerateCommand& command) {
  CLI::App* generate = app.add_subcommand("generate", "Text that continues prompts, as it is made");
  generate->footer(
      "Without --prompt each line of stdin is a prompt; where stdin is the checkpoint, a document is begun. The text\n"
      "depends on the checkpoint, the prompt, its number, the seed and the options of sampling alone, not on -j.\n"
      "Example: noether eval generate model.h5 --prompt 'In the beginning' --top-k 40 --tokens 60\n"
      "         noether eval generate model.h5 --temperature 0 --json < prompts.txt");
  generate->add_option("checkpoint", command.checkpoint, "A checkpoint, or - for stdin")->type_name("FILE")->required();
  generate->add_option("--prompt", command.prompts, "Text to go on from; may be given again; '' begins a document")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_count(*generate, "--tokens", command.options.tokens, "New tokens, at most");
  add_real(*generate, "--temperature", command.options.temperature, "Divides the logits; 0: always the likeliest token",
           0);
  add_count(*generate, "--top-k", command.options.top_k, "Draw from the N likeliest tokens only")->default_str("all");
  add_real(*generate, "--top-p", command.options.top_p,
           "Draw from the likeliest tokens that together have this probability", 0, 1, true);
  add_count(*generate, "--samples", command.options.samples, "Texts for each prompt", 1, 1 << 30);
  generate->add_flag("--no-stop", command.no_stop, "Go on after end-of-text");
  add_choice(*generate, "--biases", command.biases, {"mean", "sampled", "none"},
             "Symmetry-breaking biases, where the model has any; sampled: a draw for each prompt");
  add_seed(*generate, common);
  add_threads(*generate, common);
  add_json(*generate, common);
  add_output(*generate, common, "Where the text goes");
  return generate;
}

void run_generate(GenerateCommand& command, const CLI::App& app, const Common& common) {
  evaluation::GenerateOptions& options = command.options;
  options.biases = evaluation::biases_of(command.biases);
  options.stop = !command.no_stop;
  options.seed = common.seed;
  options.threads = common.thread_count();
  if (options.temperature == 0) {
    for (const char* option : {"--top-k", "--top-p", "--samples"})
      if (app.count(option) > 0) throw UsageError("{} has no effect at --temperature 0", option);
    if (app.count("--seed") > 0 && options.biases != evaluation::Biases::sampled)
      throw UsageError("--seed has no effect at --temperature 0");
  }
  if (command.checkpoint == "-" && command.prompts.empty()) command.prompts.emplace_back();

  architecture::Checkpoint checkpoint =
      architecture::read_checkpoint(store::open_one(command.checkpoint, store::kCheckpointFile), false);
  Reporter reporter("eval", common.verbosity());
  TextOutput output(common.output);
  std::size_t given = 0;
  const auto next_prompt = [&]() -> std::optional<std::string> {
    if (!command.prompts.empty())
      return given < command.prompts.size() ? std::optional(command.prompts[given++]) : std::nullopt;
    std::string line;
    if (std::getline(std::cin, line)) return ++given, line;
    if (given == 0) throw Error("stdin: no prompts; give one with --prompt, or one a line");
    return std::nullopt;
  };
  if (command.prompts.empty() && isatty(STDIN_FILENO) != 0)
    reporter.message("prompts from the terminal, one a line; Ctrl-D ends");

  evaluation::GenerateSink sink;
  sink.text = [&](std::string_view text) {
    if (!common.json) output.write(text);
  };
  sink.end = [&](const evaluation::Generation& g) {
    if (g.restarts > 0)
      reporter.detail(fmt::format("the context of {} tokens was full {} times: the text goes on from its latter half",
                                  checkpoint.config.context, g.restarts));
    if (!common.json) return output.write("\n");
    output.write(nlohmann::ordered_json{{"checkpoint", checkpoint.name},
                                        {"digest", checkpoint.digest},
                                        {"prompt", g.prompt},
                                        {"prompt_number", g.prompt_number},
                                        {"sample", g.sample},
                                        {"text", g.text},
                                        {"tokens", g.ids.size()},
                                        {"prompt_ids", g.prompt_ids},
                                        {"ids", g.ids},
                                        {"log_probability", g.log_probability},
                                        {"finish", g.finish},
                                        {"restarts", g.restarts},
                                        {"temperature", options.temperature},
                                        {"top_k", options.top_k},
                                        {"top_p", options.top_p},
                                        {"biases", command.biases},
                                        {"seed", options.seed}}
                     .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                 "\n");
  };
  evaluation::generate(checkpoint, next_prompt, options, sink);
  output.close();
}

} // namespace

Subcommand generate_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<GenerateCommand>();
  CLI::App* app = add_generate(parent, common, *command);
  return {app, [=, &common] { run_generate(*command, *app, common); }};
}

} // namespace noether
