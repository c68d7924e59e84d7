// align enrich, score: classes of tokens among those that each head prefers.
#include "align/subcommands.h"

#include <algorithm>

namespace noether {

namespace {

CLI::App* add_enrich(CLI::App& app, Common& common, EnrichCommand& command) {
  CLI::App* enrich = app.add_subcommand("enrich", "The classes of tokens that each head prefers");
  enrich->footer(
      "For each head, end of its list and class: log2 of the class' share of the listed tokens over its share of the\n"
      "vocabulary, the two-sided hypergeometric p-value, and q, the false-discovery rate over the whole table. null_p "
      "is\n"
      "the share of random directions that find as many.\n"
      "Example: noether align enrich model.h5 --significant 0.01 | column -t\n"
      "         noether align enrich model.h5 --classes my-classes.tsv --plot classes.png");
  enrich->add_option("checkpoint", command.checkpoints, "A checkpoint, or - for stdin")
      ->type_name("FILE")
      ->required()
      ->expected(1);
  enrich
      ->add_option("--classes", command.classes, "More classes: lines CLASS, a tab, TOKEN as `tokenize show` shows it")
      ->type_name("FILE");
  add_real(*enrich, "--significant", command.significant, "Leave out rows whose q is larger", 0, 1, true);
  command.view.add_heads(*enrich);
  command.view.add_plot(*enrich, "Draw the mean enrichment of each class over heads");
  add_enrich_options(*enrich, common, command);
  return enrich;
}

CLI::App* add_score(CLI::App& app, Common& common, EnrichCommand& command) {
  CLI::App* score = app.add_subcommand("score", "The semantic alignment score, a row for each checkpoint");
  score->footer("The mean over heads of log2 enrichment of structural tokens (punctuation, line ends, sentence starts) "
                "among the\n"
                "best aligned, plus that of byte fragments among the worst; half a token is added to each count. The "
                "null columns\n"
                "are of random directions of the same length: their mean, and the share of them that reach the score.\n"
                "Example: noether align score step-*.h5");
  score->add_option("checkpoints", command.checkpoints, "Checkpoints")
      ->type_name("FILE...")
      ->required()
      ->expected(1, std::numeric_limits<int>::max());
  add_enrich_options(*score, common, command);
  return score;
}

/// Bars of each class' mean log2 enrichment over heads, at both ends.
std::string enrichment_bars(const Subject& subject, const std::vector<alignment::TokenClass>& classes,
                            const alignment::EnrichmentTable& found, std::int64_t top) {
  struct Sums {
    double found = 0, expected = 0;
  };
  std::vector<std::array<Sums, 2>> sums(classes.size());
  for (const alignment::Enrichment& row : found.rows) {
    Sums& of = sums[row.of][row.top ? 0 : 1];
    of.found += static_cast<double>(row.found);
    of.expected += row.expected;
  }
  std::string script = fmt::format(
      "set title {}\nset style data histograms\nset style fill solid 0.9\nset xtics rotate by -40\nset grid "
      "ytics\nset ylabel 'log2 enrichment, all heads'\nset key above\n$data << END\n",
      plot::quoted(fmt::format("Classes among each head's best and worst {}: {}", top, subject.checkpoint.name)));
  for (std::size_t k = 0; k < classes.size(); ++k) {
    if (sums[k][0].expected == 0) continue;
    const auto log2 = [](const Sums& of) { return std::log2((of.found + 0.5) / (of.expected + 0.5)); };
    script += fmt::format("\"{}\" {} {}\n", classes[k].name, log2(sums[k][0]), log2(sums[k][1]));
  }
  return script + "END\nplot $data using 2:xtic(1) linecolor rgb '#21918c' title 'top', $data using 3 linecolor rgb "
                  "'#440154' title 'bottom'\n";
}

void run_enrich(EnrichCommand& command, const CLI::App& app, const Common& common) {
  check_enrich(command, app);
  command.options.seed = common.seed;
  command.options.embedding = alignment::embedding_of(command.view.embedding);
  const std::optional<text::TokenFile> tokens = command.view.open_text();
  Subject subject(command.checkpoints.front());
  command.view.check(subject);
  std::vector<alignment::TokenClass> classes = alignment::classes_of(subject.tokenizer());
  if (!command.classes.empty()) alignment::add_classes(command.classes, subject.tokenizer(), classes);
  const alignment::EnrichmentTable found =
      alignment::enrich(subject.model, subject.tokenizer(), classes, command.view.directions(subject, tokens),
                        command.options, subject.checkpoint.name);
  TextOutput output(common.output);
  TableWriter table = table_writer({{"layer"},
                                    {"head"},
                                    {"end"},
                                    {"class"},
                                    {"members"},
                                    {"found"},
                                    {"expected", 4},
                                    {"log2_enrichment", 4},
                                    {"p", 3},
                                    {"q", 3},
                                    {"null_found", 4},
                                    {"null_p", 3}},
                                   common, output);
  const auto cell = [](const std::optional<double>& value) { return value ? Cell(*value) : Cell(); };
  for (const alignment::Enrichment& row : found.rows)
    if (command.view.shows(row.layer, row.head) && row.q <= command.significant)
      table.row({row.layer, row.head, row.top ? "top" : "bottom", classes[row.of].name, row.members, row.found,
                 row.expected, row.log2, row.p, row.q, cell(row.null_found), cell(row.null_p)});
  output.close();
  Reporter("align", common.verbosity())
      .message(fmt::format("semantic alignment score {:.3f} (standard error {:.3f} over {} heads)", found.score(),
                           found.standard_error(), found.heads.size()));
  if (!command.view.plot.empty())
    plot::draw(command.view.plot, enrichment_bars(subject, classes, found, command.options.top));
}

/// The share of random directions whose score reaches this one, itself counted.
double share_reaching(const alignment::EnrichmentTable& found) {
  const double score = found.score();
  const auto reach =
      std::count_if(found.null_scores.begin(), found.null_scores.end(), [&](double value) { return value >= score; });
  return static_cast<double>(reach + 1) / static_cast<double>(found.null_scores.size() + 1);
}

void run_score(EnrichCommand& command, const CLI::App& app, const Common& common) {
  check_enrich(command, app);
  command.options.seed = common.seed;
  command.options.embedding = alignment::embedding_of(command.view.embedding);
  const std::optional<text::TokenFile> tokens = command.view.open_text();
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  for (const std::string& path : command.checkpoints) {
    Subject subject(path);
    const alignment::EnrichmentTable found =
        alignment::enrich(subject.model, subject.tokenizer(), alignment::classes_of(subject.tokenizer()),
                          command.view.directions(subject, tokens), command.options, subject.checkpoint.name);
    double structural = 0, fragments = 0, null = 0;
    for (const alignment::SemanticScore& head : found.heads) {
      structural += head.structural / static_cast<double>(found.heads.size());
      fragments += head.fragments / static_cast<double>(found.heads.size());
    }
    for (const double score : found.null_scores) null += score / static_cast<double>(found.null_scores.size());
    const bool compared = !found.null_scores.empty();
    if (!table)
      table = table_writer({{"checkpoint"},
                            {"score", 5},
                            {"stderr", 3},
                            {"structural", 5},
                            {"fragments", 5},
                            {"heads"},
                            {"null_score", 4},
                            {"null_p", 3}},
                           common, output);
    table->row({subject.checkpoint.name, found.score(), found.standard_error(), structural, fragments,
                std::ssize(found.heads), compared ? Cell(null) : Cell(),
                compared ? Cell(share_reaching(found)) : Cell()});
  }
  output.close();
}

} // namespace

Subcommand enrich_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<EnrichCommand>();
  CLI::App* app = add_enrich(parent, common, *command);
  return {app, [=, &common] { run_enrich(*command, *app, common); }};
}

Subcommand score_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<EnrichCommand>();
  CLI::App* app = add_score(parent, common, *command);
  return {app, [=, &common] { run_score(*command, *app, common); }};
}

} // namespace noether
