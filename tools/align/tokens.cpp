// align tokens: the tokens that each head prefers.
#include "align/subcommands.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace noether {

namespace {

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

} // namespace

Subcommand tokens_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<TokensCommand>();
  CLI::App* app = add_tokens(parent, common, *command);
  return {app, [=, &common] { run_tokens(*command, *app, common); }};
}

} // namespace noether
