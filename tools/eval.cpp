// eval: what a checkpoint does on data: its loss on a validation set, the text that it writes, its sharpness, and how
// it goes on where something is asked.
#include "checkpoint_cells.h"
#include "common.h"

#include "evaluation/choices.h"
#include "evaluation/generate.h"
#include "evaluation/last_word.h"
#include "evaluation/loss.h"
#include "evaluation/puzzles.h"
#include "evaluation/sharpness.h"
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

struct LossCommand {
  std::vector<std::string> inputs; ///< checkpoints, and last the tokens: CLI11 cannot tell them apart
  evaluation::LossOptions options;
  std::string prefix = "auto", biases = "mean", precision = "f32";
};

/// CLI11 would say the inputs twice.
class InputsHelp : public CLI::Formatter {
public:
  explicit InputsHelp(std::string subcommand) : subcommand_(std::move(subcommand)) {}
  std::string make_usage(const CLI::App*, std::string) const override {
    return fmt::format("Usage: noether eval {} [OPTIONS] CHECKPOINT... TOKENS\n", subcommand_);
  }

private:
  std::string subcommand_;
};

/// A file or a stream of checkpoints; the first of a file is opened before any work.
struct Source {
  store::InputStream stream;
  std::optional<store::FileReader> first;
};

/// Opens the checkpoints and, last of the inputs, the tokens. What has a name is checked before stdin is read: whatever
/// writes there may take hours.
text::TokenFile open_inputs(std::vector<std::string> inputs, std::vector<Source>& sources,
                            const std::function<void(const store::FileReader&, const text::TokenFile&)>& check) {
  if (inputs.size() < 2)
    throw UsageError("expected a checkpoint and the tokens to score, found {} alone", inputs.front());
  if (std::count(inputs.begin(), inputs.end(), "-") > 1) throw UsageError("only one input can be stdin (-)");
  text::TokenFile tokens(store::open_one(inputs.back(), store::kTokensFile));
  inputs.pop_back();
  for (const std::string& path : inputs) {
    sources.push_back({store::InputStream(path), {}});
    if (path == "-") continue;
    sources.back().first = sources.back().stream.next();
    check(*sources.back().first, tokens);
  }
  return tokens;
}

void for_each_checkpoint(std::vector<Source>& sources, const std::function<void(store::FileReader)>& use) {
  for (Source& source : sources) {
    std::optional<store::FileReader> file = source.first ? std::move(source.first) : source.stream.next();
    for (; file; file = source.stream.next()) use(std::move(*file));
  }
}

CLI::App* add_loss(CLI::App& app, Common& common, LossCommand& command) {
  CLI::App* loss = app.add_subcommand("loss", "The loss on held-out tokens, a row for each checkpoint");
  loss->footer(
      "Each token is scored once: windows follow each other, and with a --stride below the --window each but the "
      "first\n"
      "scores its last --stride tokens only, with the others before them as context. Loss is in nats a token; its\n"
      "standard error is over documents, or over 64 blocks where there are fewer than 30 documents.\n"
      "Example: noether eval loss symmetric.h5 broken.h5 valid.h5\n"
      "         noether train start.h5 train.h5 --emit-every 100 | noether eval loss - valid.h5");
  auto formatter = std::make_shared<InputsHelp>("loss");
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
  std::vector<Source> sources;
  const text::TokenFile tokens = open_inputs(
      command.inputs, sources, [&](const auto& file, const auto& data) { evaluation::check_fit(file, data, options); });

  Reporter reporter("eval", common.verbosity(), common.progress_mode());
  TextOutput output(common.output);
  std::optional<TableWriter> table; // from the first row on: a failure before it leaves nothing
  for_each_checkpoint(sources, [&](store::FileReader file) {
    evaluation::check_fit(file, tokens, options); // before its parameters are copied
    architecture::Checkpoint checkpoint = architecture::read_checkpoint(file, false);
    { const store::FileReader closed = std::move(file); } // one copy of it is enough
    const evaluation::Loss row = evaluation::evaluate_loss(checkpoint, tokens, options, reporter);
    if (!table) table = table_writer(loss_columns(), common, output);
    table->row({checkpoint.name, step_of(checkpoint), row.tokens, row.bytes, row.window, row.stride,
                row.prefixed ? "end-of-text" : "none", std::string(row.biases), row.loss, cell(row.standard_error),
                fmt::format("{} {}", row.units, row.over_documents ? "documents" : "blocks"), row.perplexity,
                cell(row.bits_per_byte), cell(row.min_batch_4096), static_cast<double>(row.tokens) / row.seconds,
                shown(tokens.tokenizer_digest(), common), shown(checkpoint.digest, common)});
  });
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

/// A setting of the run that made the checkpoint, as it was asked for last.
std::optional<nlohmann::ordered_json> run_setting(const architecture::Checkpoint& checkpoint, const std::string& name) {
  const nlohmann::ordered_json& state = checkpoint.training.state;
  if (!state.is_object() || !state.contains("phases") || !state["phases"].is_array() || state["phases"].empty())
    return std::nullopt;
  const nlohmann::ordered_json& phase = state["phases"].back();
  if (!phase.is_object() || !phase.contains("settings") || !phase["settings"].contains(name)) return std::nullopt;
  return phase["settings"][name];
}

struct SharpnessCommand {
  std::vector<std::string> inputs;
  evaluation::SharpnessOptions options;
  std::string biases = "mean";
};

CLI::App* add_sharpness(CLI::App& app, Common& common, SharpnessCommand& command) {
  CLI::App* sharpness =
      app.add_subcommand("sharpness", "The largest eigenvalues of the loss' Hessian, beside 2 / learning rate");
  sharpness->footer(
      "By Lanczos' method, with exact products of the Hessian of the mean loss over some windows of the tokens. "
      "Gradient\n"
      "descent stands learning rates below 2 / the largest; an eigenvalue is as near as the residual says.\n"
      "Example: noether eval sharpness model.h5 train.h5 --count 3");
  auto formatter = std::make_shared<InputsHelp>("sharpness");
  formatter->column_width(34);
  sharpness->formatter(formatter);
  sharpness->add_option("inputs", command.inputs, "Checkpoints, - for those that come through stdin; last the tokens")
      ->option_text("CHECKPOINT... TOKENS")
      ->required()
      ->expected(1, std::numeric_limits<int>::max());
  add_count(*sharpness, "--count", command.options.lanczos.count, "Eigenvalues, the largest first", 1, 1000);
  add_count(*sharpness, "--windows", command.options.windows, "Windows of the context, evenly spread over the tokens",
            1, 1 << 20);
  add_count(*sharpness, "--batch", command.options.batch, "Windows at a time", 1, 1 << 20);
  add_count(*sharpness, "--iterations", command.options.lanczos.iterations,
            "Products with the Hessian, at most; each keeps a vector as long as the parameters", 1, 1 << 20);
  add_real(*sharpness, "--tolerance", command.options.lanczos.tolerance,
           "Largest residual, relative to the largest absolute eigenvalue", 0, 1, true);
  add_choice(*sharpness, "--biases", command.biases, {"mean", "none"},
             "Symmetry-breaking biases, where the model has any");
  add_seed(*sharpness, common);
  add_threads(*sharpness, common);
  add_json(*sharpness, common);
  add_output(*sharpness, common, "Where the table goes");
  return sharpness;
}

void run_sharpness(SharpnessCommand& command, const Common& common) {
  command.options.biases = evaluation::biases_of(command.biases);
  command.options.lanczos.seed = common.seed;
  command.options.threads = common.thread_count();
  std::vector<Source> sources;
  const text::TokenFile tokens = open_inputs(command.inputs, sources, [](const auto&, const auto&) {});
  Reporter reporter("eval", common.verbosity(), common.progress_mode());
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  for_each_checkpoint(sources, [&](const store::FileReader& file) {
    architecture::Checkpoint checkpoint = architecture::read_checkpoint(file, false);
    const evaluation::Sharpness found = evaluation::sharpness(checkpoint, tokens, command.options, reporter);
    const auto optimizer = run_setting(checkpoint, "optimizer"), rate = run_setting(checkpoint, "lr");
    const bool known = optimizer && optimizer->is_string() && rate && rate->is_number();
    if (!table)
      table = table_writer({{"checkpoint"},
                            {"step"},
                            {"tokens"},
                            {"loss"},
                            {"rank"},
                            {"eigenvalue"},
                            {"residual", 2},
                            {"optimizer"},
                            {"learning_rate"},
                            {"two_over_lr"}},
                           common, output);
    for (std::size_t i = 0; i < found.eigenvalues.size(); ++i)
      table->row({checkpoint.name, step_of(checkpoint), found.tokens, found.loss, static_cast<std::int64_t>(i + 1),
                  found.eigenvalues[i].value, found.eigenvalues[i].residual,
                  known ? Cell(optimizer->get<std::string>()) : Cell(), known ? Cell(rate->get<double>()) : Cell(),
                  known ? Cell(2 / rate->get<double>()) : Cell()});
  });
  output.close();
}

/// What the programs have in common that ask how texts go on: of one checkpoint, or each that a stream brings.
struct AskCommand {
  std::string checkpoint, file; ///< file "": the puzzles beside the program
  evaluation::ScoringOptions options;
  std::string prefix = "none", biases = "mean", precision = "f32";
  bool items = false;
};

CLI::Option* add_ask(CLI::App& command_app, Common& common, AskCommand& command, const std::string& file) {
  command_app.add_option("checkpoint", command.checkpoint, "A checkpoint, or - for those that come through stdin")
      ->type_name("CHECKPOINT")
      ->required();
  CLI::Option* option = command_app.add_option("file", command.file, file)->type_name("FILE");
  add_choice(
      command_app, "--prefix", command.prefix, {"auto", "end-of-text", "none"},
      "What each text begins with; none: its own first token, which nothing predicts then; auto: end-of-text where "
      "the tokenizer has one");
  add_choice(command_app, "--biases", command.biases, {"mean", "sampled", "none"},
             "Symmetry-breaking biases, where the model has any; sampled: a draw for each item");
  add_choice(command_app, "--precision", command.precision, {"f32", "bf16", "auto"},
             "Of the matrix products; auto: bf16 where the processor has it");
  add_seed(command_app, common);
  add_threads(command_app, common);
  add_json(command_app, common);
  add_output(command_app, common, "Where the table goes");
  return option;
}

/// How a row's items were asked, and who answered; the same columns in every table.
std::vector<Column> ask_columns(std::vector<Column> figures) {
  std::vector<Column> columns{{"checkpoint"}, {"step"}, {"prefix"}, {"biases"}};
  columns.insert(columns.end(), figures.begin(), figures.end());
  for (const char* name : {"tokenizer", "digest"}) columns.push_back({name});
  return columns;
}

/// Reads the items with `read`, and then each checkpoint; `answer` makes its rows, without the columns that all have.
template <class Read, class Answer>
void run_ask(AskCommand& command, const CLI::App& app, const Common& common, const std::vector<Column>& columns,
             Read read, Answer answer) {
  evaluation::ScoringOptions& options = command.options;
  options.prefix = evaluation::prefix_of(command.prefix);
  options.biases = evaluation::biases_of(command.biases);
  options.precision = models::precision_of(command.precision);
  options.seed = common.seed;
  options.threads = common.thread_count();
  if (app.count("--seed") > 0 && options.biases != evaluation::Biases::sampled)
    throw UsageError("--seed has no effect without --biases sampled");
  if (command.checkpoint == "-" && command.file == "-") throw UsageError("only one input can be stdin (-)");
  std::vector<Source> sources;
  sources.push_back({store::InputStream(command.checkpoint), {}});
  if (command.checkpoint != "-") { // its faults come first, whatever writes the items
    sources.back().first = sources.back().stream.next();
    sources.back().first->expect(store::kCheckpointFile);
  }
  const auto items = read(command.file.empty() ? shared_file("puzzles.jsonl") : command.file);

  Reporter reporter("eval", common.verbosity(), common.progress_mode());
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  for_each_checkpoint(sources, [&](store::FileReader file) {
    file.expect(store::kCheckpointFile);
    architecture::Checkpoint checkpoint = architecture::read_checkpoint(file, false);
    { const store::FileReader closed = std::move(file); } // one copy of it is enough
    const bool broken = checkpoint.config.symmetry_break != architecture::Break::none;
    const bool prefixed =
        options.prefix != evaluation::Prefix::none && checkpoint.tokenizer && checkpoint.tokenizer->end_of_text;
    answer(checkpoint, items, reporter, [&](const std::vector<Cell>& figures) {
      std::vector<Cell> cells{checkpoint.name, step_of(checkpoint), prefixed ? "end-of-text" : "none",
                              std::string(evaluation::name_of(broken ? options.biases : evaluation::Biases::none))};
      cells.insert(cells.end(), figures.begin(), figures.end());
      cells.emplace_back(shown(text::digest(*checkpoint.tokenizer), common));
      cells.emplace_back(shown(checkpoint.digest, common));
      if (!table) table = table_writer(ask_columns(columns), common, output);
      table->row(cells);
    });
  });
  output.close();
}

void say_truncated(Reporter& reporter, const architecture::Checkpoint& checkpoint, std::int64_t truncated,
                   std::int64_t items) {
  if (truncated > 0)
    reporter.message(fmt::format("{} of {} items are longer than the context of {}, which is {}: their beginnings are "
                                 "left out",
                                 truncated, items, checkpoint.name, checkpoint.config.context));
}

CLI::App* add_puzzles(CLI::App& app, Common& common, AskCommand& command) {
  CLI::App* puzzles =
      app.add_subcommand("puzzles", "Small puzzles: completions, and which of two sentences is likelier");
  puzzles->footer("A row for each puzzle, then one for each kind and one for all, with means; losses are in nats a "
                  "token. The file\n"
                  "holds a JSON object a line, of one of these forms, the sound sentence first:\n"
                  "  {\"kind\": \"copy\", \"prompt\": \"A lamp. A\", \"expected\": \" lamp\"}\n"
                  "  {\"kind\": \"syntax\", \"compare\": [\"He is here.\", \"He are here.\"]}\n"
                  "Example: noether eval puzzles model.h5\n"
                  "         noether train start.h5 train.h5 --emit-every 100 | noether eval puzzles - mine.jsonl");
  add_ask(*puzzles, common, command, "Puzzles, - for stdin")->default_str("19 that come with noether");
  return puzzles;
}

void run_puzzles(AskCommand& command, const CLI::App& app, const Common& common) {
  run_ask(command, app, common,
          {{"level"},
           {"kind"},
           {"line"},
           {"items"},
           {"rank"},
           {"top1", 4},
           {"top5", 4},
           {"first_token_loss"},
           {"first_token_loss_stderr", 2},
           {"completion_loss"},
           {"sound_loss"},
           {"unsound_loss"},
           {"perplexity_ratio"},
           {"sound_lower", 4},
           {"truncated"}},
          evaluation::read_puzzles,
          [&](architecture::Checkpoint& checkpoint, const evaluation::Puzzles& puzzles, Reporter& reporter, auto row) {
            const std::vector<evaluation::PuzzleScore> scores =
                evaluation::score_puzzles(checkpoint, puzzles, command.options, reporter);
            const auto add = [&](const std::string& level, const std::string& kind, const Cell& line,
                                 const evaluation::PuzzleFigures& found) {
              std::vector<Cell> cells{level, kind, line, found.items};
              if (const auto& done = found.completions)
                cells.insert(cells.end(), {done->rank, done->top1, done->top5, done->first_token_loss.value,
                                           cell(done->first_token_loss.standard_error), done->completion_loss});
              else
                cells.insert(cells.end(), 6, Cell());
              if (const auto& compared = found.comparisons)
                cells.insert(cells.end(), {compared->sound_loss, compared->unsound_loss, compared->perplexity_ratio,
                                           compared->sound_lower});
              else
                cells.insert(cells.end(), 4, Cell());
              cells.emplace_back(found.truncated);
              row(cells);
            };
            const std::span<const evaluation::Puzzle> items = puzzles.items;
            for (std::size_t i = 0; i < items.size(); ++i)
              add("item", items[i].kind, items[i].line,
                  evaluation::figures(items.subspan(i, 1), std::span(scores).subspan(i, 1)));
            for (const evaluation::KindFigures& kind : evaluation::figures_by_kind(items, scores))
              add("kind", kind.kind, {}, kind.figures);
            const evaluation::PuzzleFigures all = evaluation::figures(items, scores);
            add("all", "", {}, all);
            say_truncated(reporter, checkpoint, all.truncated, all.items);
          });
}

CLI::App* add_choices(CLI::App& app, Common& common, AskCommand& command) {
  CLI::App* choices = app.add_subcommand("choices", "Multiple choice: which of several endings is the likeliest");
  choices->footer("A row of means for each checkpoint: acc, by the log-likelihood of the endings, and acc_norm, by "
                  "that divided by\n"
                  "their bytes, with standard errors. The file holds a JSON object a line:\n"
                  "  {\"context\": \"Water is\", \"endings\": [\"wet.\", \"dry.\"], \"label\": 0}\n"
                  "Example: noether eval choices model.h5 mine.jsonl\n"
                  "         noether eval choices model.h5 mine.jsonl --items --json");
  add_ask(*choices, common, command, "Items, - for stdin")->required();
  choices->add_flag("--items", command.items, "A row for each item, with the losses of its endings");
  return choices;
}

void run_choices(AskCommand& command, const CLI::App& app, const Common& common) {
  const std::vector<Column> totals{{"items"},    {"acc"}, {"acc_stderr", 2}, {"acc_norm"}, {"acc_norm_stderr", 2},
                                   {"truncated"}};
  const std::vector<Column> items{{"line"}, {"label"},    {"guess"},  {"guess_norm"},
                                  {"acc"},  {"acc_norm"}, {"losses"}, {"truncated"}};
  run_ask(command, app, common, command.items ? items : totals, evaluation::read_choices,
          [&](architecture::Checkpoint& checkpoint, const evaluation::Choices& choices, Reporter& reporter, auto row) {
            const std::vector<evaluation::ChoiceScore> scores =
                evaluation::score_choices(checkpoint, choices, command.options, reporter);
            const evaluation::ChoiceSummary found = evaluation::summary(choices, scores);
            say_truncated(reporter, checkpoint, found.truncated, found.items);
            if (!command.items)
              return row({found.items, found.acc.value, cell(found.acc.standard_error), found.acc_norm.value,
                          cell(found.acc_norm.standard_error), found.truncated});
            const auto count = [](std::size_t number) { return static_cast<std::int64_t>(number); };
            for (std::size_t i = 0; i < scores.size(); ++i) {
              const std::size_t label = choices.items[i].label;
              const evaluation::ChoiceScore& score = scores[i];
              row({choices.items[i].line, count(label), count(score.guess), count(score.guess_norm),
                   std::int64_t{score.guess == label}, std::int64_t{score.guess_norm == label}, score.losses,
                   std::int64_t{score.truncated}});
            }
          });
}

CLI::App* add_last_word(CLI::App& app, Common& common, AskCommand& command) {
  CLI::App* last = app.add_subcommand("last-word", "The last word of each text, predicted from all before it");
  last->footer(
      "A row of means for each checkpoint: acc, the share of words whose every token is the likeliest, and the\n"
      "perplexity of a word, with standard errors. The file holds a JSON object a line, as LAMBADA's:\n"
      "  {\"text\": \"He gave the dog a bone\"}\n"
      "Example: noether eval last-word model.h5 lambada.jsonl");
  add_ask(*last, common, command, "Texts, - for stdin")->required();
  last->add_flag("--items", command.items, "A row for each text");
  return last;
}

void run_last_word(AskCommand& command, const CLI::App& app, const Common& common) {
  const std::vector<Column> totals{{"items"},          {"acc"},        {"acc_stderr", 2},        {"loss"},
                                   {"loss_stderr", 2}, {"perplexity"}, {"perplexity_stderr", 2}, {"truncated"}};
  const std::vector<Column> items{{"line"}, {"word"}, {"tokens"}, {"acc"}, {"loss"}, {"truncated"}};
  run_ask(command, app, common, command.items ? items : totals, evaluation::read_last_words,
          [&](architecture::Checkpoint& checkpoint, const evaluation::LastWords& words, Reporter& reporter, auto row) {
            const std::vector<evaluation::LastWordScore> scores =
                evaluation::score_last_words(checkpoint, words, command.options, reporter);
            const evaluation::LastWordSummary found = evaluation::summary(scores);
            say_truncated(reporter, checkpoint, found.truncated, found.items);
            if (!command.items)
              return row({found.items, found.acc.value, cell(found.acc.standard_error), found.loss.value,
                          cell(found.loss.standard_error), found.perplexity.value,
                          cell(found.perplexity.standard_error), found.truncated});
            for (std::size_t i = 0; i < scores.size(); ++i)
              row({words.items[i].line, words.items[i].word.substr(1), scores[i].tokens, std::int64_t{scores[i].right},
                   scores[i].loss, std::int64_t{scores[i].truncated}});
          });
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"What a checkpoint does on data: its loss on held-out text, the text that it writes, its sharpness, and "
               "how it goes on where something is asked.",
               "eval"};
  Common common;
  LossCommand loss;
  GenerateCommand generate;
  SharpnessCommand sharpness;
  AskCommand puzzles, choices, last_word;
  add_common(app, common,
             "Example: noether eval loss model.h5 valid.h5\n"
             "         noether eval generate model.h5 --prompt 'In the beginning'\n"
             "         noether eval sharpness model.h5 train.h5\n"
             "         noether eval puzzles model.h5");
  const CLI::App* loss_app = add_loss(app, common, loss);
  const CLI::App* generate_app = add_generate(app, common, generate);
  const CLI::App* sharpness_app = add_sharpness(app, common, sharpness);
  const CLI::App* puzzles_app = add_puzzles(app, common, puzzles);
  const CLI::App* choices_app = add_choices(app, common, choices);
  const CLI::App* last_word_app = add_last_word(app, common, last_word);
  const std::vector<Subcommand> subcommands{
      {loss_app, [&] { run_loss(loss, *loss_app, common); }},
      {generate_app, [&] { run_generate(generate, *generate_app, common); }},
      {sharpness_app, [&] { run_sharpness(sharpness, common); }},
      {puzzles_app, [&] { run_puzzles(puzzles, *puzzles_app, common); }},
      {choices_app, [&] { run_choices(choices, *choices_app, common); }},
      {last_word_app, [&] { run_last_word(last_word, *last_word_app, common); }},
  };
  return run_tool(app, argc, argv, common, [&] {
    models::keep_freed_memory();
    run_subcommand(subcommands);
  });
}
