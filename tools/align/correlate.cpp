// align correlate: over many checkpoints, whether alignment goes with puzzles and loss.
#include "align/subcommands.h"

#include "alignment/statistics.h"
#include "evaluation/loss.h"
#include "evaluation/puzzles.h"

#include <ATen/Parallel.h>

namespace noether {

namespace {

struct CorrelateCommand {
  EnrichCommand enrich;
  std::string puzzles, valid, scores;
  std::int64_t rounds = 10000;
};

CLI::App* add_correlate(CLI::App& app, Common& common, CorrelateCommand& command) {
  CLI::App* correlate =
      app.add_subcommand("correlate", "Whether the semantic alignment score goes with solving puzzles");
  correlate->footer(
      "For each two of semantic alignment score, loss on puzzles (that of the first token, over all completions) and, "
      "with\n"
      "--valid, validation loss: Pearson's and Spearman's correlation over the checkpoints, and the two-sided p-value "
      "of\n"
      "the former by permutation. A score that predicts solving has a negative correlation with that loss.\n"
      "Example: noether align correlate runs/*.h5 --valid valid.h5 --scores scores.tsv");
  correlate->add_option("checkpoints", command.enrich.checkpoints, "Three checkpoints or more")
      ->type_name("FILE...")
      ->required()
      ->expected(3, std::numeric_limits<int>::max());
  correlate->add_option("--puzzles", command.puzzles, "Puzzles, as of `noether eval puzzles`")
      ->type_name("FILE")
      ->default_str("those that come with noether");
  correlate->add_option("--valid", command.valid, "A tokens file to measure the validation loss on")
      ->type_name("TOKENS");
  correlate->add_option("--scores", command.scores, "Also write the figures of each checkpoint")->type_name("FILE");
  add_count(*correlate, "--permutations", command.rounds, "Orders that the p-value is counted over", 100, 1 << 30);
  add_enrich_options(*correlate, common, command.enrich);
  return correlate;
}

void run_correlate(CorrelateCommand& command, const CLI::App& app, const Common& common) {
  check_enrich(command.enrich, app);
  alignment::EnrichOptions options = command.enrich.options;
  options.seed = common.seed;
  options.embedding = alignment::embedding_of(command.enrich.view.embedding);
  const std::optional<text::TokenFile> tokens = command.enrich.view.open_text();
  const evaluation::Puzzles puzzles =
      evaluation::read_puzzles(command.puzzles.empty() ? shared_file("puzzles.jsonl") : command.puzzles);
  std::optional<text::TokenFile> valid;
  if (!command.valid.empty()) valid.emplace(store::open_one(command.valid, store::kTokensFile));
  std::optional<TextOutput> scores_output;
  if (!command.scores.empty()) scores_output.emplace(command.scores);
  Reporter reporter("align", common.verbosity(), common.progress_mode());

  std::vector<std::string> names{"alignment_score", "puzzle_loss"};
  if (valid) names.emplace_back("valid_loss");
  std::vector<std::vector<double>> columns(names.size());
  std::vector<std::string> checkpoints;
  for (const std::string& path : command.enrich.checkpoints) {
    Subject subject(path);
    at::set_num_threads(common.thread_count()); // evaluation leaves one
    columns[0].push_back(
        alignment::enrich(subject.model, subject.tokenizer(), alignment::classes_of(subject.tokenizer()),
                          command.enrich.view.directions(subject, tokens), options, subject.checkpoint.name)
            .score());
    const evaluation::PuzzleFigures solved =
        evaluation::figures(puzzles.items, evaluation::score_puzzles(subject.checkpoint, puzzles,
                                                                     {.threads = common.thread_count()}, reporter));
    if (!solved.completions) throw Error("{}: no completions in it, whose loss could be compared", puzzles.name);
    columns[1].push_back(solved.completions->first_token_loss.value);
    if (valid)
      columns[2].push_back(
          evaluation::evaluate_loss(subject.checkpoint, *valid, {.threads = common.thread_count()}, reporter).loss);
    checkpoints.push_back(subject.checkpoint.name);
  }

  if (scores_output) {
    std::vector<Column> heading{{"checkpoint"}};
    for (const std::string& name : names) heading.push_back({name});
    TableWriter table = table_writer(heading, common, *scores_output);
    for (std::size_t i = 0; i < checkpoints.size(); ++i) {
      std::vector<Cell> cells{checkpoints[i]};
      for (const auto& column : columns) cells.emplace_back(column[i]);
      table.row(cells);
    }
    scores_output->close();
  }
  TextOutput output(common.output);
  TableWriter table =
      table_writer({{"x"}, {"y"}, {"checkpoints"}, {"pearson", 4}, {"spearman", 4}, {"p", 3}}, common, output);
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::size_t j = i + 1; j < names.size(); ++j)
      table.row({names[i], names[j], std::ssize(checkpoints), alignment::pearson(columns[i], columns[j]),
                 alignment::spearman(columns[i], columns[j]),
                 alignment::permutation_p(columns[i], columns[j], command.rounds, common.seed)});
  output.close();
}

} // namespace

Subcommand correlate_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<CorrelateCommand>();
  CLI::App* app = add_correlate(parent, common, *command);
  return {app, [=, &common] { run_correlate(*command, *app, common); }};
}

} // namespace noether
