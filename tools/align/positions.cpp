// align positions: the positions that each head prefers.
#include "align/subcommands.h"

#include "alignment/statistics.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <numeric>

namespace noether {

namespace {

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
  const at::Tensor directions = view.directions(subject, tokens);
  const alignment::Scores scores =
      alignment::position_scores(subject.model, directions, alignment::embedding_of(view.embedding));

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
                          {"amplification", 4},
                          {"direction_norm"}},
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
                 std::max_element(values.begin(), values.end()) - values.begin(), gain,
                 directions[layer][head].norm().item<double>()});
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

} // namespace

Subcommand positions_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<PositionsCommand>();
  CLI::App* app = add_positions(parent, common, *command);
  return {app, [=, &common] { run_positions(*command, common); }};
}

} // namespace noether
