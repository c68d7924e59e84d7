// eval puzzles, choices, last-word: how a checkpoint goes on where something is asked.
#include "checkpoint_cells.h"
#include "eval/subcommands.h"

#include "evaluation/choices.h"
#include "evaluation/last_word.h"
#include "evaluation/puzzles.h"

namespace noether {

namespace {

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

Subcommand puzzles_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<AskCommand>();
  CLI::App* app = add_puzzles(parent, common, *command);
  return {app, [=, &common] { run_puzzles(*command, *app, common); }};
}

Subcommand choices_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<AskCommand>();
  CLI::App* app = add_choices(parent, common, *command);
  return {app, [=, &common] { run_choices(*command, *app, common); }};
}

Subcommand last_word_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<AskCommand>();
  CLI::App* app = add_last_word(parent, common, *command);
  return {app, [=, &common] { run_last_word(*command, *app, common); }};
}

} // namespace noether
