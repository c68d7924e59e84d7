// eval: what a checkpoint does on data: its loss on a validation set, and the text that it writes.
#include "common.h"

#include "evaluation/generate.h"
#include "evaluation/loss.h"
#include "models/memory.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cmath>
#include <iostream>
#include <limits>

namespace {

using namespace noether;

/// Digests as people compare them; whole ones where programs do.
std::string shown(const std::string& digest, const Common& common) {
  return common.json ? digest : digest.substr(0, 12);
}

template <class Value> Cell cell(const std::optional<Value>& value) { return value ? Cell(*value) : Cell(); }

/// The step of the training run, which a fresh checkpoint does not have.
Cell step_of(const architecture::Checkpoint& checkpoint) {
  const auto found = checkpoint.training.state.find("step");
  if (checkpoint.training.state.is_object() && found != checkpoint.training.state.end() && found->is_number_integer())
    return found->get<std::int64_t>();
  return std::int64_t{0};
}

struct LossCommand {
  std::vector<std::string> inputs; ///< checkpoints, and last the tokens: CLI11 cannot tell them apart
  evaluation::LossOptions options;
  std::string prefix = "auto", biases = "mean", precision = "f32";
};

struct LossHelp : CLI::Formatter {
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: noether eval loss [OPTIONS] CHECKPOINT... TOKENS\n";
  }
};

CLI::App* add_loss(CLI::App& app, Common& common, LossCommand& command) {
  CLI::App* loss = app.add_subcommand("loss", "The loss on held-out tokens, a row for each checkpoint");
  loss->footer(
      "Each token is scored once: windows follow each other, and with a --stride below the --window each but the "
      "first\n"
      "scores its last --stride tokens only, with the others before them as context. Loss is in nats a token; its\n"
      "standard error is over documents, or over 64 blocks where there are fewer than 30 documents.\n"
      "Example: noether eval loss symmetric.h5 broken.h5 valid.h5\n"
      "         noether train start.h5 train.h5 --emit-every 100 | noether eval loss - valid.h5");
  auto formatter = std::make_shared<LossHelp>();
  formatter->column_width(34);
  loss->formatter(formatter);
  loss->add_option("inputs", command.inputs,
                   "Checkpoints, - for those that come through stdin; last the tokens to score")
      ->option_text("CHECKPOINT... TOKENS")
      ->required()
      ->expected(1, std::numeric_limits<int>::max());
  add_count(*loss, "--window", command.options.window, "Tokens of a forward pass")->default_str("the model's context");
  add_count(*loss, "--stride", command.options.stride, "Tokens from a window to the next")->default_str("the window");
  add_count(*loss, "--limit", command.options.limit, "Score the first N tokens only")->default_str("all");
  add_choice(*loss, "--prefix", command.prefix, {"auto", "end-of-text", "none"},
             "What the first token is predicted from; auto: end-of-text where the tokenizer has one; after none the "
             "first token is not scored");
  add_choice(*loss, "--biases", command.biases, {"mean", "sampled", "none"},
             "Symmetry-breaking biases, where the model has any; sampled: a draw for each window");
  add_choice(*loss, "--precision", command.precision, {"f32", "bf16", "auto"},
             "Of the matrix products; auto: bf16 where the processor has it");
  add_seed(*loss, common);
  add_threads(*loss, common);
  add_json(*loss, common);
  add_output(*loss, common, "Where the table goes");
  return loss;
}

std::vector<Column> loss_columns() {
  return {{"checkpoint"},  {"step"},       {"tokens"},        {"bytes"},          {"window"},
          {"stride"},      {"prefix"},     {"biases"},        {"loss"},           {"loss_stderr", 2},
          {"stderr_over"}, {"perplexity"}, {"bits_per_byte"}, {"min_batch_4096"}, {"tokens_per_second", 4},
          {"tokenizer"},   {"digest"}};
}

void run_loss(LossCommand& command, const CLI::App& app, const Common& common) {
  evaluation::LossOptions& options = command.options;
  options.prefix = evaluation::prefix_of(command.prefix);
  options.biases = evaluation::biases_of(command.biases);
  options.precision = models::precision_of(command.precision);
  options.seed = common.seed;
  options.threads = common.thread_count();
  if (app.count("--seed") > 0 && options.biases != evaluation::Biases::sampled)
    throw UsageError("--seed has no effect without --biases sampled");
  if (command.inputs.size() < 2)
    throw UsageError("expected a checkpoint and the tokens to score, found {} alone", command.inputs.front());
  if (std::count(command.inputs.begin(), command.inputs.end(), "-") > 1)
    throw UsageError("only one input can be stdin (-)");

  // What has a name is checked before stdin is read: whatever writes there may take hours.
  const text::TokenFile tokens(store::open_one(command.inputs.back(), store::kTokensFile));
  command.inputs.pop_back();
  struct Source {
    store::InputStream stream;
    std::optional<store::FileReader> first;
  };
  std::vector<Source> sources;
  for (const std::string& path : command.inputs) {
    sources.push_back({store::InputStream(path), {}});
    if (path == "-") continue;
    sources.back().first = sources.back().stream.next();
    evaluation::check_fit(*sources.back().first, tokens, options);
  }

  Reporter reporter("eval", common.verbosity(), common.progress_mode());
  TextOutput output(common.output);
  std::optional<TableWriter> table; // from the first row on: a failure before it leaves nothing
  for (Source& source : sources) {
    std::optional<store::FileReader> file = source.first ? std::move(source.first) : source.stream.next();
    for (; file; file = source.stream.next()) {
      evaluation::check_fit(*file, tokens, options); // before its parameters are copied
      architecture::Checkpoint checkpoint = architecture::read_checkpoint(*file, false);
      file.reset(); // one copy of it is enough
      const evaluation::Loss row = evaluation::evaluate_loss(checkpoint, tokens, options, reporter);
      if (!table) table = table_writer(loss_columns(), common, output);
      table->row({checkpoint.name, step_of(checkpoint), row.tokens, row.bytes, row.window, row.stride,
                  row.prefixed ? "end-of-text" : "none", std::string(row.biases), row.loss, cell(row.standard_error),
                  fmt::format("{} {}", row.units, row.over_documents ? "documents" : "blocks"), row.perplexity,
                  cell(row.bits_per_byte), cell(row.min_batch_4096), static_cast<double>(row.tokens) / row.seconds,
                  shown(tokens.tokenizer_digest(), common), shown(checkpoint.digest, common)});
    }
  }
  output.close();
}

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

int main(int argc, char** argv) {
  CLI::App app{"What a checkpoint does on data: its loss on held-out text, and the text that it writes.", "eval"};
  Common common;
  LossCommand loss;
  GenerateCommand generate;
  add_common(app, common,
             "Example: noether eval loss model.h5 valid.h5\n"
             "         noether eval generate model.h5 --prompt 'In the beginning'");
  const CLI::App* loss_app = add_loss(app, common, loss);
  const CLI::App* generate_app = add_generate(app, common, generate);
  return run_tool(app, argc, argv, common, [&] {
    if (app.get_subcommands().empty()) throw UsageError("expected a subcommand: loss or generate");
    models::keep_freed_memory();
    if (loss_app->parsed()) run_loss(loss, *loss_app, common);
    if (generate_app->parsed()) run_generate(generate, *generate_app, common);
  });
}
