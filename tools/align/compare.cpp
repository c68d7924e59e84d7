// align compare: two checkpoints side by side.
#include "align/subcommands.h"

#include "alignment/compare.h"

#include <algorithm>

namespace noether {

namespace {

struct CompareCommand {
  std::vector<std::string> checkpoints;
  View view;
  std::int64_t top = 10;
};

CLI::App* add_compare(CLI::App& app, Common& common, CompareCommand& command) {
  CLI::App* compare = app.add_subcommand("compare", "What the heads of two checkpoints prefer, side by side");
  compare->footer(
      "correlation is Spearman's, of the alignments of all tokens; overlap counts the tokens that are among\n"
      "the best --top of both. A symmetric model has no direction of its own: give --direction.\n"
      "Example: noether align compare early.h5 late.h5\n"
      "         noether align compare a.h5 b.h5 --direction mean-query --text valid.h5");
  compare->add_option("checkpoints", command.checkpoints, "Two checkpoints")->type_name("A B")->required()->expected(2);
  add_count(*compare, "--top", command.top, "Best aligned tokens that are compared", 1, 1 << 20);
  command.view.add_direction(*compare);
  command.view.add_text(*compare, "for --direction mean-query");
  command.view.add_heads(*compare);
  add_threads(*compare, common);
  add_json(*compare, common);
  add_output(*compare, common, "Where the table goes");
  return compare;
}

void run_compare(const CompareCommand& command, const Common& common) {
  const View& view = command.view;
  view.check();
  if (!view.text.empty() && view.direction != "mean-query")
    throw UsageError("--text has no effect without --direction mean-query");
  const std::optional<text::TokenFile> tokens = view.open_text();
  Subject a(command.checkpoints[0]), b(command.checkpoints[1]);
  view.check(a);
  if (text::digest(a.tokenizer()) != text::digest(b.tokenizer()))
    throw Error("{} and {}: their tokenizers differ", a.checkpoint.name, b.checkpoint.name);
  if (a.config().layers != b.config().layers || a.config().heads != b.config().heads)
    throw Error("{} has {} x {} heads, {} has {} x {}", a.checkpoint.name, a.config().layers, a.config().heads,
                b.checkpoint.name, b.config().layers, b.config().heads);
  const alignment::Embedding embedding = alignment::embedding_of(view.embedding);
  const auto scores = [&](const Subject& of) {
    return alignment::token_scores(of.model, view.directions(of, tokens), embedding);
  };
  const auto rows = alignment::compare(scores(a), scores(b), alignment::ordinary_ids(a.tokenizer()), command.top);
  TextOutput output(common.output);
  TableWriter table = table_writer(
      {{"layer"}, {"head"}, {"correlation", 4}, {"overlap"}, {"spread_a", 4}, {"spread_b", 4}, {"best_a"}, {"best_b"}},
      common, output);
  const auto words = [&](const std::vector<std::int64_t>& ids) {
    std::vector<std::string> shown;
    for (const std::int64_t id : ids) shown.push_back(a.spelling(id));
    return fmt::format("{}", fmt::join(shown, " "));
  };
  for (const alignment::HeadComparison& row : rows)
    if (view.shows(row.layer, row.head))
      table.row({row.layer, row.head, row.correlation, row.overlap, row.spread_a, row.spread_b, words(row.best_a),
                 words(row.best_b)});
  output.close();
}

} // namespace

Subcommand compare_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<CompareCommand>();
  CLI::App* app = add_compare(parent, common, *command);
  return {app, [=, &common] { run_compare(*command, common); }};
}

} // namespace noether
