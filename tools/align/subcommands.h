// What the subcommands of align share: checkpoints with their model, the options that say what keys are compared with,
// and pictures of heads.
#pragma once

#include "common.h"

#include "alignment/directions.h"
#include "alignment/enrich.h"
#include "alignment/scores.h"
#include "models/model.h"
#include "plot/gnuplot.h"
#include "text/token_file.h"
#include "text/unicode.h"

#include <optional>
#include <string>
#include <vector>

namespace noether {

Subcommand tokens_subcommand(CLI::App& parent, Common& common);
Subcommand positions_subcommand(CLI::App& parent, Common& common);
Subcommand enrich_subcommand(CLI::App& parent, Common& common);
Subcommand score_subcommand(CLI::App& parent, Common& common);
Subcommand compare_subcommand(CLI::App& parent, Common& common);
Subcommand correlate_subcommand(CLI::App& parent, Common& common);
Subcommand momentum_subcommand(CLI::App& parent, Common& common);
Subcommand balance_subcommand(CLI::App& parent, Common& common);

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
std::string heat_map(const Subject& subject, const std::string& title, const std::vector<double>& value);

/// What enrich, score and correlate ask.
struct EnrichCommand {
  std::vector<std::string> checkpoints;
  View view;
  alignment::EnrichOptions options;
  std::string classes;
  double significant = 1;
};

void add_enrich_options(CLI::App& app, Common& common, EnrichCommand& command);
void check_enrich(const EnrichCommand& command, const CLI::App& app);

} // namespace noether
