// align: what a checkpoint's attention prefers, and what its symmetries conserve.
#include "checkpoint_cells.h"
#include "common.h"

#include "alignment/compare.h"
#include "alignment/directions.h"
#include "alignment/enrich.h"
#include "alignment/scores.h"
#include "alignment/statistics.h"
#include "base/number.h"
#include "evaluation/loss.h"
#include "evaluation/puzzles.h"
#include "models/conserved.h"
#include "models/memory.h"
#include "plot/gnuplot.h"
#include "text/unicode.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace {

using namespace noether;
using alignment::Grid;

/// A checkpoint in memory, and the model over it.
struct Subject {
  architecture::Checkpoint checkpoint;
  models::Model model;

  explicit Subject(const std::string& path, bool with_optimizer = false)
      : checkpoint(architecture::read_checkpoint(store::open_one(path, store::kCheckpointFile), with_optimizer)),
        model(models::bind(checkpoint.config, checkpoint.parameters)) {}
  const architecture::Config& config() const { return checkpoint.config; }
  const text::Tokenizer& tokenizer() const {
    if (!checkpoint.tokenizer)
      throw Error("{}: has no tokenizer: its tokens cannot be told apart (init -t gives it one)", checkpoint.name);
    return *checkpoint.tokenizer;
  }
  std::string spelling(std::int64_t id) const {
    return checkpoint.tokenizer && id < std::ssize(checkpoint.tokenizer->tokens)
               ? text::printable(checkpoint.tokenizer->tokens[static_cast<std::size_t>(id)])
               : "";
  }
};

/// What keys are compared with, and which heads are shown.
struct View {
  std::string direction = "bias", embedding = "raw", text;
  std::int64_t limit = 8192, layer = -1, head = -1;
  std::string plot;
  CLI::Option *limit_option = nullptr, *embedding_option = nullptr;

  void add_direction(CLI::App& app) {
    app.add_option(
           "--direction", direction,
           "What keys are compared with: the mean bias of queries, their mean over --text, or a file of numbers")
        ->type_name("bias|mean-query|FILE")
        ->capture_default_str();
    embedding_option =
        add_choice(app, "--embedding", embedding, {"raw", "normalised"},
                   "The key of a token: W_K on its embedding, as published, or what the layer would make of it");
  }
  void add_text(CLI::App& app, const std::string& help) {
    app.add_option("--text", text, help)->type_name("TOKENS");
    limit_option = add_count(app, "--limit", limit, "Read the first N tokens of --text");
  }
  void add_heads(CLI::App& app) {
    add_count(app, "--layer", layer, "Show this layer alone, from 0", 0)->default_str("all");
    add_count(app, "--head", head, "Show this head alone, from 0", 0)->default_str("all");
  }
  void add_plot(CLI::App& app, const std::string& what) {
    app.add_option("--plot", plot, what + ": a file .png, .svg or .pdf, by gnuplot; the table is made all the same")
        ->type_name("FILE");
  }

  /// Before any work.
  void check() const {
    if (!plot.empty()) plot::check_picture(plot);
    if (direction == "mean-query" && text.empty())
      throw UsageError("--direction mean-query needs --text TOKENS: queries are those of a text");
    if (limit_option != nullptr && limit_option->count() > 0 && text.empty())
      throw UsageError("--limit has no effect without --text");
  }
  void check(const Subject& subject) const {
    const architecture::Config& c = subject.config();
    if (layer >= c.layers)
      throw UsageError("--layer {}: the layers of {} are 0 to {}", layer, subject.checkpoint.name, c.layers - 1);
    if (head >= c.heads)
      throw UsageError("--head {}: the heads of {} are 0 to {}", head, subject.checkpoint.name, c.heads - 1);
  }
  bool shows(std::int64_t at_layer, std::int64_t at_head) const {
    return (layer < 0 || layer == at_layer) && (head < 0 || head == at_head);
  }
  std::optional<text::TokenFile> open_text() const {
    return text.empty() ? std::nullopt
                        : std::optional<text::TokenFile>(std::in_place, store::open_one(text, store::kTokensFile));
  }
  at::Tensor directions(const Subject& subject, const std::optional<text::TokenFile>& tokens) const {
    if (tokens && subject.checkpoint.tokenizer &&
        text::digest(*subject.checkpoint.tokenizer) != tokens->tokenizer_digest())
      throw Error("{}: tokens of another tokenizer than that of {}", tokens->name(), subject.checkpoint.name);
    const at::Tensor found = direction == "bias"         ? alignment::bias_directions(subject.checkpoint, subject.model)
                             : direction == "mean-query" ? alignment::mean_queries(subject.model, *tokens, limit)
                                                         : alignment::read_directions(direction, subject.config());
    alignment::check_directions(found, subject.checkpoint.name);
    return found;
  }
};

/// Calls use(layer, head) for every head that is shown.
template <class Use> void for_each_head(const Subject& subject, const View& view, const Use& use) {
  for (std::int64_t layer = 0; layer < subject.config().layers; ++layer)
    for (std::int64_t head = 0; head < subject.config().heads; ++head)
      if (view.shows(layer, head)) use(layer, head);
}

/// A heat map of layers (downwards) x heads. value: by layer and head.
std::string heat_map(const Subject& subject, const std::string& title, const std::vector<double>& value) {
  const architecture::Config& c = subject.config();
  // Viridis, by hand: named colour maps are newer than Debian 12's gnuplot.
  std::string script = fmt::format(
      "set title {}\nset xlabel 'head'\nset ylabel 'layer'\nset yrange [{}.5:-0.5]\nset xrange [-0.5:{}.5]\nset xtics "
      "1\n"
      "set ytics 1\nset palette defined (0 '#440154', 1 '#472d7b', 2 '#3b528b', 3 '#2c728e', 4 '#21918c', 5 '#28ae80', "
      "6 '#5ec962', 7 '#addc30', 8 '#fde725')\n",
      plot::quoted(title), c.layers - 1, c.heads - 1);
  script += "plot '-' matrix with image notitle\n";
  for (std::int64_t layer = 0; layer < c.layers; ++layer)
    for (std::int64_t head = 0; head < c.heads; ++head)
      script += fmt::format("{}{}", value[static_cast<std::size_t>(layer * c.heads + head)],
                            head + 1 == c.heads ? "\n" : " ");
  return script + "e\n";
}

// ---- tokens ----

struct TokensCommand {
  std::string checkpoint;
  View view;
  std::int64_t top = 10, least_count = 2;
  std::string by = "alignment";
};

CLI::App* add_tokens(CLI::App& app, Common& common, TokensCommand& command) {
  CLI::App* tokens = app.add_subcommand("tokens", "The tokens whose keys each head prefers, and those that it avoids");
  tokens->footer(
      "A row for each token at the top and the bottom of a head's list: its alignment, the cosine between its key and\n"
      "the direction, and its amplification, exp(key . direction / sqrt(head width)), by which the direction "
      "multiplies\n"
      "the token's weight in attention. With --text keys are those of a text, in their contexts: means over a token's\n"
      "occurrences, and the share of the head's attention that they get, beside the share that they would get evenly.\n"
      "Example: noether align tokens model.h5 --top 20 --layer 2\n"
      "         noether align tokens model.h5 --text valid.h5 --by amplification --plot heads.png");
  tokens->add_option("checkpoint", command.checkpoint, "A checkpoint, or - for stdin")->type_name("FILE")->required();
  add_count(*tokens, "--top", command.top, "Tokens at each end of a list", 1, 1 << 20);
  add_choice(*tokens, "--by", command.by, {"alignment", "amplification"}, "What lists are ordered by");
  command.view.add_direction(*tokens);
  command.view.add_text(*tokens, "Look at the keys of a text, not at those of bare embeddings");
  add_count(*tokens, "--min-count", command.least_count, "with --text: leave out tokens that occur less often");
  command.view.add_heads(*tokens);
  command.view.add_plot(*tokens, "Draw the mean alignment of each head's top tokens");
  add_threads(*tokens, common);
  add_json(*tokens, common);
  add_output(*tokens, common, "Where the table goes");
  return tokens;
}

void run_tokens(const TokensCommand& command, const CLI::App& app, const Common& common) {
  const View& view = command.view;
  view.check();
  if (view.text.empty() && app.count("--min-count") > 0) throw UsageError("--min-count has no effect without --text");
  if (!view.text.empty() && view.embedding_option->count() > 0)
    throw UsageError("--embedding has no effect with --text: its keys are those of whole contexts");
  const std::optional<text::TokenFile> tokens = view.open_text();
  Subject subject(command.checkpoint);
  view.check(subject);
  const at::Tensor directions = view.directions(subject, tokens);
  Reporter reporter("align", common.verbosity());
  std::optional<alignment::TextScores> of_text;
  alignment::Scores bare;
  if (tokens)
    of_text = alignment::text_scores(subject.model, directions, *tokens, view.limit, reporter);
  else
    bare = alignment::token_scores(subject.model, directions, alignment::embedding_of(view.embedding));
  const alignment::Scores& scores = of_text ? of_text->scores : bare;

  std::vector<std::int64_t> candidates; // special tokens have keys in a text alone, where they are often attended to
  if (subject.checkpoint.tokenizer && !of_text) {
    candidates = alignment::ordinary_ids(*subject.checkpoint.tokenizer);
  } else {
    candidates.resize(static_cast<std::size_t>(subject.config().vocab_size));
    std::iota(candidates.begin(), candidates.end(), 0);
  }
  if (of_text) {
    std::erase_if(candidates,
                  [&](std::int64_t id) { return of_text->counts[static_cast<std::size_t>(id)] < command.least_count; });
    if (candidates.empty())
      throw Error("{}: no token occurs {} times in the {} that were read", tokens->name(), command.least_count,
                  std::min<std::int64_t>(view.limit, static_cast<std::int64_t>(tokens->size())));
  }

  std::vector<Column> columns{{"layer"}, {"head"},  {"end"},          {"rank"},
                              {"id"},    {"token"}, {"alignment", 4}, {"amplification", 4}};
  if (of_text) {
    columns.push_back({"count"});
    columns.push_back({"attention", 4});
    columns.push_back({"even_share", 4});
  }
  TextOutput output(common.output);
  TableWriter table = table_writer(columns, common, output);
  std::vector<double> heat(static_cast<std::size_t>(subject.config().layers * subject.config().heads));
  for_each_head(subject, view, [&](std::int64_t layer, std::int64_t head) {
    const auto alignment = scores.alignment.at(layer, head), exponent = scores.exponent.at(layer, head);
    const auto by = command.by == "alignment" ? alignment : exponent;
    for (const bool bottom : {false, true}) {
      const auto ids = alignment::extreme_ids(by, candidates, command.top, bottom);
      for (std::size_t rank = 0; rank < ids.size(); ++rank) {
        const auto id = static_cast<std::size_t>(ids[rank]);
        std::vector<Cell> cells{layer,
                                head,
                                bottom ? "bottom" : "top",
                                static_cast<std::int64_t>(rank + 1),
                                ids[rank],
                                subject.spelling(ids[rank]),
                                static_cast<double>(alignment[id]),
                                std::exp(static_cast<double>(exponent[id]))};
        if (of_text) {
          cells.emplace_back(of_text->counts[id]);
          cells.emplace_back(static_cast<double>(of_text->attention.at(layer, head)[id]));
          cells.emplace_back(of_text->even[id]);
        }
        table.row(cells);
        if (!bottom)
          heat[static_cast<std::size_t>(layer * subject.config().heads + head)] +=
              static_cast<double>(alignment[id]) / static_cast<double>(ids.size());
      }
    }
  });
  output.close();
  if (!view.plot.empty())
    plot::draw(view.plot, heat_map(subject,
                                   fmt::format("Mean alignment of each head's best {} tokens: {}", command.top,
                                               subject.checkpoint.name),
                                   heat));
}

// ---- positions ----

struct PositionsCommand {
  std::string checkpoint;
  View view;
  bool profile = false;
};

CLI::App* add_positions(CLI::App& app, Common& common, PositionsCommand& command) {
  CLI::App* positions = app.add_subcommand("positions", "The positions that each head prefers");
  positions->footer(
      "Learned positions: the keys of their embeddings. RoPE: the vocabulary's mean key, turned to each position.\n"
      "recency is the correlation of alignment with position: above 0 later positions are preferred. With --profile a\n"
      "row for each layer and position: mean and standard deviation over heads.\n"
      "Example: noether align positions model.h5\n"
      "         noether align positions model.h5 --profile --plot positions.svg -o positions.tsv");
  positions->add_option("checkpoint", command.checkpoint, "A checkpoint, or - for stdin")
      ->type_name("FILE")
      ->required();
  positions->add_flag("--profile", command.profile, "A row for each layer and position");
  command.view.add_direction(*positions);
  command.view.add_text(*positions, "for --direction mean-query");
  command.view.add_heads(*positions);
  command.view.add_plot(*positions, "Draw a profile a layer");
  add_threads(*positions, common);
  add_json(*positions, common);
  add_output(*positions, common, "Where the table goes");
  return positions;
}

void run_positions(const PositionsCommand& command, const Common& common) {
  const View& view = command.view;
  view.check();
  if (!view.text.empty() && view.direction != "mean-query")
    throw UsageError("--text has no effect without --direction mean-query");
  const std::optional<text::TokenFile> tokens = view.open_text();
  Subject subject(command.checkpoint);
  view.check(subject);
  const architecture::Config& c = subject.config();
  const alignment::Scores scores = alignment::position_scores(subject.model, view.directions(subject, tokens),
                                                              alignment::embedding_of(view.embedding));

  TextOutput output(common.output);
  const auto positions = static_cast<std::size_t>(c.context);
  std::string curves; // a block a layer
  std::vector<std::int64_t> layers;
  TableWriter table =
      command.profile
          ? table_writer({{"layer"}, {"position"}, {"alignment", 4}, {"deviation", 3}, {"amplification", 4}}, common,
                         output)
          : table_writer({{"layer"},
                          {"head"},
                          {"alignment", 4},
                          {"first_quarter", 4},
                          {"last_quarter", 4},
                          {"recency", 4},
                          {"best_position"},
                          {"amplification", 4}},
                         common, output);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    std::vector<double> sum(positions), squares(positions), amplified(positions);
    std::int64_t heads = 0;
    for (std::int64_t head = 0; head < c.heads; ++head) {
      if (!view.shows(layer, head)) continue;
      ++heads;
      const auto alignment = scores.alignment.at(layer, head), exponent = scores.exponent.at(layer, head);
      std::vector<double> values(alignment.begin(), alignment.end()), place(positions);
      std::iota(place.begin(), place.end(), 0);
      double gain = 0;
      for (std::size_t i = 0; i < positions; ++i) {
        const double amplification = std::exp(static_cast<double>(exponent[i]));
        sum[i] += values[i];
        squares[i] += values[i] * values[i];
        amplified[i] += amplification;
        gain += amplification / static_cast<double>(positions);
      }
      if (command.profile) continue;
      const auto quarter = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, positions / 4));
      const auto mean = [](auto begin, auto end) {
        return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
      };
      table.row({layer, head, mean(values.begin(), values.end()), mean(values.begin(), values.begin() + quarter),
                 mean(values.end() - quarter, values.end()), alignment::pearson(place, values),
                 std::max_element(values.begin(), values.end()) - values.begin(), gain});
    }
    if (heads == 0) continue;
    layers.push_back(layer);
    const auto n = static_cast<double>(heads);
    for (std::size_t i = 0; i < positions; ++i) {
      const double mean = sum[i] / n, variance = std::max(0.0, squares[i] / n - mean * mean);
      if (command.profile)
        table.row({layer, static_cast<std::int64_t>(i), mean, std::sqrt(variance), amplified[i] / n});
      curves += fmt::format("{} {}\n", i, mean);
    }
    curves += "e\n";
  }
  output.close();
  if (view.plot.empty()) return;
  std::string script = fmt::format("set title {}\nset xlabel 'position'\nset ylabel 'alignment'\nset grid\nplot ",
                                   plot::quoted("Alignment of positions: " + subject.checkpoint.name));
  for (std::size_t i = 0; i < layers.size(); ++i)
    script += fmt::format("{}'-' with lines linewidth 2 title 'layer {}'", i > 0 ? ", " : "", layers[i]);
  plot::draw(view.plot, script + "\n" + curves);
}

// ---- enrich, score ----

struct EnrichCommand {
  std::vector<std::string> checkpoints;
  View view;
  alignment::EnrichOptions options;
  std::string classes;
  double significant = 1;
};

void add_enrich_options(CLI::App& app, Common& common, EnrichCommand& command) {
  add_count(app, "--top", command.options.top, "Tokens at each end of a head's list", 1, 1 << 20);
  add_count(app, "--null", command.options.null,
            "Random directions of the same length that are counted beside it; 0: none", 0, 10000);
  command.view.add_direction(app);
  command.view.add_text(app, "for --direction mean-query");
  add_seed(app, common);
  add_threads(app, common);
  add_json(app, common);
  add_output(app, common, "Where the table goes");
}

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

void check_enrich(const EnrichCommand& command, const CLI::App& app) {
  command.view.check();
  if (!command.view.text.empty() && command.view.direction != "mean-query")
    throw UsageError("--text has no effect without --direction mean-query");
  if (command.options.null == 0 && app.count("--seed") > 0) throw UsageError("--seed has no effect with --null 0");
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

// ---- compare ----

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

// ---- correlate ----

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
    Common to_file = common;
    to_file.output = command.scores;
    TableWriter table = table_writer(heading, to_file, *scores_output);
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

// ---- momentum, balance ----

struct ConservedCommand {
  std::vector<std::string> checkpoints;
};

CLI::App* add_momentum(CLI::App& app, Common& common, ConservedCommand& command) {
  CLI::App* momentum = app.add_subcommand("momentum", "Angular momenta, which exact symmetric dynamics conserve");
  momentum->footer(
      "|L_QK| and |L_VO| of each layer and key head, from the optimizer's momentum divided by its length.\n"
      "Example: noether align momentum model.h5\n"
      "         noether train start.h5 tokens.h5 --emit-every 100 --steps 1000 | noether align momentum -");
  momentum->add_option("checkpoints", command.checkpoints, "Checkpoints with their optimizer's state, or - for stdin")
      ->type_name("FILE...")
      ->required()
      ->expected(1, std::numeric_limits<int>::max());
  add_json(*momentum, common);
  add_output(*momentum, common, "Where the table goes");
  return momentum;
}

CLI::App* add_balance(CLI::App& app, Common& common, ConservedCommand& command) {
  CLI::App* balance = app.add_subcommand("balance", "Balances of weights, which gradient flow conserves");
  balance->footer("|W_Q W_Q^T - W_K W_K^T| and |W_V W_V^T - W_O^T W_O| of each layer and key head; the drift is the "
                  "norm of what these\n"
                  "matrices changed by since the first checkpoint.\n"
                  "Example: noether align balance start.h5 model.h5");
  balance->add_option("checkpoints", command.checkpoints, "Checkpoints of one model, or - for those from stdin")
      ->type_name("FILE...")
      ->required()
      ->expected(1, std::numeric_limits<int>::max());
  add_json(*balance, common);
  add_output(*balance, common, "Where the table goes");
  return balance;
}

void for_each_checkpoint(const std::vector<std::string>& paths, bool with_optimizer,
                         const std::function<void(architecture::Checkpoint&)>& use) {
  if (std::count(paths.begin(), paths.end(), "-") > 1) throw UsageError("only one input can be stdin (-)");
  for (const std::string& path : paths) {
    store::InputStream stream(path);
    while (std::optional<store::FileReader> file = stream.next()) {
      architecture::Checkpoint checkpoint = architecture::read_checkpoint(*file, with_optimizer);
      use(checkpoint);
    }
  }
}

/// Calls row(layer, head, place) for each key head; place: in [layers, kv_heads].
template <class Row> void for_each_key_head(const architecture::Config& c, const Row& row) {
  for (std::int64_t layer = 0; layer < c.layers; ++layer)
    for (std::int64_t head = 0; head < c.kv_heads; ++head) row(layer, head, layer * c.kv_heads + head);
}

void run_momentum(const ConservedCommand& command, const Common& common) {
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  for_each_checkpoint(command.checkpoints, true, [&](architecture::Checkpoint& checkpoint) {
    auto& states = checkpoint.training.optimizer;
    if (!states.contains("momentum"))
      throw Error("{}: no optimizer state in it, and so no momentum (a fresh checkpoint has none)", checkpoint.name);
    const models::HeadMatrices L =
        models::angular_momentum(checkpoint.config, checkpoint.parameters, states.at("momentum"));
    const at::Tensor qk = models::norms(L.qk).contiguous(), vo = models::norms(L.vo).contiguous();
    if (!table)
      table = table_writer({{"checkpoint"}, {"step"}, {"layer"}, {"head"}, {"L_QK"}, {"L_VO"}}, common, output);
    for_each_key_head(checkpoint.config, [&](std::int64_t layer, std::int64_t head, std::int64_t i) {
      table->row({checkpoint.name, step_of(checkpoint), layer, head, qk.const_data_ptr<double>()[i],
                  vo.const_data_ptr<double>()[i]});
    });
  });
  output.close();
}

void run_balance(const ConservedCommand& command, const Common& common) {
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  std::optional<models::HeadMatrices> first;
  for_each_checkpoint(command.checkpoints, false, [&](architecture::Checkpoint& checkpoint) {
    const models::HeadMatrices B = models::balance(checkpoint.config, checkpoint.parameters);
    if (!first) {
      first = B;
      table = table_writer(
          {{"checkpoint"}, {"step"}, {"layer"}, {"head"}, {"balance_QK"}, {"balance_VO"}, {"drift_QK"}, {"drift_VO"}},
          common, output);
    }
    if (B.qk.sizes() != first->qk.sizes())
      throw Error("{}: other layers or heads than the first checkpoint's", checkpoint.name);
    const at::Tensor columns[] = {models::norms(B.qk).contiguous(), models::norms(B.vo).contiguous(),
                                  models::norms(B.qk - first->qk).contiguous(),
                                  models::norms(B.vo - first->vo).contiguous()};
    for_each_key_head(checkpoint.config, [&](std::int64_t layer, std::int64_t head, std::int64_t i) {
      std::vector<Cell> cells{checkpoint.name, step_of(checkpoint), layer, head};
      for (const at::Tensor& column : columns) cells.emplace_back(column.const_data_ptr<double>()[i]);
      table->row(cells);
    });
  });
  output.close();
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"What a checkpoint's attention prefers, and what its symmetries conserve.", "align"};
  Common common;
  TokensCommand tokens;
  PositionsCommand positions;
  EnrichCommand enrich, score;
  CompareCommand compare;
  CorrelateCommand correlate;
  ConservedCommand momentum, balance;
  add_common(app, common,
             "Example: noether align tokens model.h5 --top 20\n"
             "         noether align enrich model.h5 --significant 0.01\n"
             "         noether align balance start.h5 model.h5");
  const CLI::App* tokens_app = add_tokens(app, common, tokens);
  const CLI::App* positions_app = add_positions(app, common, positions);
  const CLI::App* enrich_app = add_enrich(app, common, enrich);
  const CLI::App* score_app = add_score(app, common, score);
  const CLI::App* compare_app = add_compare(app, common, compare);
  const CLI::App* correlate_app = add_correlate(app, common, correlate);
  const CLI::App* momentum_app = add_momentum(app, common, momentum);
  const CLI::App* balance_app = add_balance(app, common, balance);
  return run_tool(app, argc, argv, common, [&] {
    if (app.get_subcommands().empty())
      throw UsageError("expected a subcommand: tokens, positions, enrich, score, compare, correlate, momentum or "
                       "balance");
    models::keep_freed_memory();
    at::set_num_threads(common.thread_count());
    try {
      if (tokens_app->parsed()) run_tokens(tokens, *tokens_app, common);
      if (positions_app->parsed()) run_positions(positions, common);
      if (enrich_app->parsed()) run_enrich(enrich, *enrich_app, common);
      if (score_app->parsed()) run_score(score, *score_app, common);
      if (compare_app->parsed()) run_compare(compare, common);
      if (correlate_app->parsed()) run_correlate(correlate, *correlate_app, common);
      if (momentum_app->parsed()) run_momentum(momentum, common);
      if (balance_app->parsed()) run_balance(balance, common);
    } catch (const c10::Error& error) {
      throw Error("{}", error.what_without_backtrace());
    }
  });
}
