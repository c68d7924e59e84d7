// bifurcate diagram. The attractor against mu.
#include "bifurcate/subcommands.h"

#include "maps/basins.h"
#include "maps/diagram.h"
#include "plot/image.h"

#include <cmath>
#include <limits>

namespace noether {

namespace {

struct DiagramCommand {
  std::string mu = "0:2:1000", e, picture;
  double start = 0;
  std::int64_t height = 800;
  maps::DiagramOptions options;
};

CLI::App* add_diagram(CLI::App& app, Common& common, DiagramCommand& command) {
  CLI::App* diagram = app.add_subcommand("diagram", "The attractor on the balanced line against mu");
  diagram->footer(
      "Example: noether bifurcate diagram --mu 0.9:2:1400 --picture diagram.png -o /dev/null\n"
      "         noether bifurcate diagram --mu 1.69:1.72:1000 --e=-1.6:-1.5 --picture window.png -o window.tsv");
  diagram->add_option("--mu", command.mu, "One value, or COUNT of them from FIRST to LAST")
      ->type_name("X|FIRST:LAST:COUNT")
      ->capture_default_str();
  add_count(*diagram, "--transient", command.options.transient, "Steps that are left out", 0);
  add_count(*diagram, "--keep", command.options.keep, "Steps that are kept");
  add_real(*diagram, "--start", command.start, "The error e that an orbit begins with")
      ->default_str("beside the cubic's critical point, which finds every attracting cycle");
  diagram->add_flag("--follow", command.options.follow, "Begin each mu where the one before it ended");
  diagram
      ->add_option("--picture", command.picture,
                   "A PNG file: a column for each mu, darker where the orbit is more often")
      ->type_name("FILE");
  diagram->add_option("--e", command.e, "Range of e in the picture; by default that of the orbits")
      ->type_name("LOW:HIGH");
  add_count(*diagram, "--height", command.height, "Rows of the picture", 2, 1 << 16);
  add_threads(*diagram, common);
  add_json(*diagram, common);
  add_output(*diagram, common, "Where the table goes");
  return diagram;
}

/// A column for each mu; the shade is the logarithm of how often the orbit was in a pixel.
plot::Image picture_of(const maps::Diagram& diagram, std::int64_t keep, maps::Axis axis) {
  const std::int64_t width = static_cast<std::int64_t>(diagram.escaped.size()), height = axis.count;
  std::vector<std::int64_t> hits(static_cast<std::size_t>(width * height));
  for (std::size_t i = 0; i < diagram.e.size(); ++i) {
    const double at = (diagram.e[i] - axis.low) / (axis.high - axis.low) * static_cast<double>(height);
    if (!(at >= 0 && at < static_cast<double>(height))) continue;
    const std::int64_t row = height - 1 - static_cast<std::int64_t>(at);
    ++hits[static_cast<std::size_t>(row * width) + i / static_cast<std::size_t>(keep)];
  }
  plot::Image image{width, height, std::vector<plot::Colour>(hits.size(), plot::Colour{255, 255, 255})};
  for (std::size_t i = 0; i < hits.size(); ++i)
    if (hits[i] > 0)
      image.pixels[i] =
          plot::viridis(0.85 * (1 - std::log1p(static_cast<double>(hits[i])) / std::log1p(static_cast<double>(keep))));
  return image;
}

void run_diagram(DiagramCommand& command, const CLI::App& app, const Common& common) {
  maps::DiagramOptions& options = command.options;
  for (const char* option : {"--e", "--height"})
    if (command.picture.empty() && app.count(option) > 0)
      throw UsageError("{} has no effect without --picture", option);
  options.mu = parse_values("--mu", command.mu);
  options.threads = common.thread_count();
  if (app.count("--start") > 0) options.start = command.start;
  maps::Axis axis{0, 0, command.height};
  if (!command.e.empty()) parse_interval("--e", command.e, axis);
  TextOutput output(common.output);
  const maps::Diagram found = maps::diagram(options);
  if (!command.picture.empty()) {
    if (command.e.empty()) {
      axis.low = std::numeric_limits<double>::infinity();
      axis.high = -axis.low;
      for (const double e : found.e) // comparisons with nan are false
        axis.low = e < axis.low ? e : axis.low, axis.high = e > axis.high ? e : axis.high;
      if (!(axis.low <= axis.high)) throw Error("every orbit diverged: there is nothing to draw");
      const double margin = 0.02 * std::max(axis.high - axis.low, 1e-6);
      axis.low -= margin;
      axis.high += margin;
    }
    plot::write_png(command.picture, picture_of(found, options.keep, axis));
  }
  TableWriter table = table_writer({{"mu", 0}, {"step"}, {"e", 0}}, common, output);
  for (std::size_t i = 0; i < options.mu.size(); ++i)
    for (std::int64_t n = 0; n < options.keep; ++n) {
      const double e = found.e[i * static_cast<std::size_t>(options.keep) + static_cast<std::size_t>(n)];
      if (!std::isnan(e)) table.row({options.mu[i], options.transient + n + 1, e});
    }
  output.close();
}

} // namespace

Subcommand diagram_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<DiagramCommand>();
  CLI::App* app = add_diagram(parent, common, *command);
  return {app, [=, &common] { run_diagram(*command, *app, common); }};
}

} // namespace noether
