// bifurcate diagram. The attractor against mu.
#include "bifurcate/map_option.h"
#include "bifurcate/plot_option.h"

#include "base/number.h"
#include "maps/basins.h"
#include "maps/diagram.h"
#include "plot/image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace noether {

namespace {

struct DiagramCommand {
  MapOption map;
  PlotOption plot;
  std::string mu = "0:2:1000", e;
  std::vector<std::string> starts;
  std::int64_t height = 800;
  maps::DiagramOptions options;
};

CLI::App* add_diagram(CLI::App& app, Common& common, DiagramCommand& command) {
  CLI::App* diagram =
      app.add_subcommand("diagram", "The attractors on the balanced line, or of another map, against mu");
  diagram->footer(
      "Example: noether bifurcate diagram --mu 0.9:2:1400 --plot diagram.png -o /dev/null\n"
      "         noether bifurcate diagram --mu 1.69:1.72:1000 --e=-1.6:-1.5 --plot window.svg -o window.tsv\n"
      "         noether bifurcate diagram --map 'x^3 - mu x' --mu 0:3:1200 --plot pitchfork.png -o pitchfork.tsv");
  command.map.add(*diagram);
  diagram->add_option("--mu", command.mu, "One value, or COUNT of them from FIRST to LAST")
      ->type_name("X|FIRST:LAST:COUNT")
      ->capture_default_str();
  add_count(*diagram, "--transient", command.options.transient, "Steps that are left out", 0);
  add_count(*diagram, "--keep", command.options.keep, "Steps that are kept");
  diagram
      ->add_option("--start", command.starts,
                   "Where an orbit begins (its error e); may be given again, an orbit for each")
      ->type_name("X")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("beside the map's critical points, which find every attracting cycle");
  diagram->add_flag("--follow", command.options.follow, "Begin each mu where the one before it ended");
  command.plot.add(*diagram, "A column of pixels for each mu, darker where orbits are more often");
  command.plot.add_renamed(*diagram);
  diagram->add_option("--e", command.e, "Range of e, or of x, in the picture; by default that of the orbits")
      ->type_name("LOW:HIGH");
  add_count(*diagram, "--height", command.height, "Rows of the picture", 2, 1 << 16);
  add_threads(*diagram, common);
  add_json(*diagram, common);
  add_output(*diagram, common, "Where the table goes");
  return diagram;
}

/// A column for each mu; the shade is the logarithm of how often orbits were in a pixel, the colour that of the branch
/// which was there most often: viridis for the first, then orange, red, purple, and so on from orange.
plot::Image picture_of(const maps::Diagram& diagram, std::int64_t keep, maps::Axis axis) {
  const std::int64_t width = static_cast<std::int64_t>(diagram.branch.size()) / diagram.orbits, height = axis.count;
  plot::Image image{width, height,
                    std::vector<plot::Colour>(static_cast<std::size_t>(width * height), plot::Colour{255, 255, 255})};
  constexpr std::array<plot::Colour, 3> kOthers{{{230, 159, 0}, {204, 51, 51}, {158, 85, 168}}};
  for (std::int64_t x = 0; x < width; ++x) {
    std::vector<std::vector<std::int64_t>> hits; // of each branch
    for (std::int64_t orbit = x * diagram.orbits; orbit < (x + 1) * diagram.orbits; ++orbit) {
      const std::int64_t branch = diagram.branch[static_cast<std::size_t>(orbit)];
      if (branch <= static_cast<std::int64_t>(hits.size())) continue; // empty, diverged, or drawn already
      hits.emplace_back(static_cast<std::size_t>(height));
      for (std::int64_t n = 0; n < keep; ++n) {
        const double at = (diagram.e[static_cast<std::size_t>(orbit * keep + n)] - axis.low) / (axis.high - axis.low) *
                          static_cast<double>(height);
        if (at >= 0 && at < static_cast<double>(height)) ++hits.back()[static_cast<std::size_t>(at)];
      }
    }
    for (std::int64_t y = 0; y < height; ++y) {
      std::size_t most = 0;
      for (std::size_t i = 0; i < hits.size(); ++i)
        if (hits[i][static_cast<std::size_t>(y)] > hits[most][static_cast<std::size_t>(y)]) most = i;
      const std::int64_t count = hits.empty() ? 0 : hits[most][static_cast<std::size_t>(y)];
      if (count == 0) continue;
      const double shade =
          std::log1p(static_cast<double>(count)) / std::log1p(static_cast<double>(keep)); // 0 to 1, the darkest
      plot::Colour colour = plot::viridis(0.85 * (1 - shade));
      if (most > 0)
        for (std::size_t i = 0; i < colour.size(); ++i)
          colour[i] = static_cast<std::uint8_t>(
              std::lround(kOthers[(most - 1) % kOthers.size()][i] * (0.5 + 0.5 * shade) + 255 * 0.5 * (1 - shade)));
      image.pixels[static_cast<std::size_t>((height - 1 - y) * width + x)] = colour;
    }
  }
  return image;
}

/// A point for each branch: its number, up to 9.
std::vector<std::string> sketch(const maps::Diagram& diagram, std::int64_t keep, const maps::Axis& axis) {
  std::vector<std::string> rows(static_cast<std::size_t>(kSketchHeight),
                                std::string(static_cast<std::size_t>(kSketchWidth), ' '));
  const std::int64_t values = static_cast<std::int64_t>(diagram.branch.size()) / diagram.orbits;
  for (std::size_t i = 0; i < diagram.e.size(); ++i) {
    const std::int64_t orbit = static_cast<std::int64_t>(i) / keep,
                       branch = diagram.branch[static_cast<std::size_t>(orbit)],
                       column = orbit / diagram.orbits * kSketchWidth / values;
    const double at = (diagram.e[i] - axis.low) / (axis.high - axis.low) * static_cast<double>(kSketchHeight);
    if (branch == 0 || !(at >= 0 && at < static_cast<double>(kSketchHeight))) continue;
    char& cell = rows[static_cast<std::size_t>(kSketchHeight - 1 - static_cast<std::int64_t>(at))]
                     [static_cast<std::size_t>(column)];
    if (cell == ' ') cell = branch == 1 ? '*' : static_cast<char>('0' + std::min<std::int64_t>(9, branch));
  }
  return rows;
}

void draw(const DiagramCommand& command, const maps::Diagram& found, const maps::Axis& axis) {
  const maps::DiagramOptions& options = command.options;
  const plot::Range x{options.mu.front(), options.mu.size() > 1 ? options.mu.back() : options.mu.front() + 1},
      y{axis.low, axis.high};
  if (command.plot.path == "-") {
    TextOutput("-").write(plot::framed(sketch(found, options.keep, axis), x, y));
    return;
  }
  const plot::Image image = picture_of(found, options.keep, axis);
  if (command.plot.pixels())
    plot::write_png(command.plot.path, image);
  else
    plot::draw(command.plot.path,
               fmt::format("set title {}\nset xlabel 'mu'\nset ylabel {}\nset tics out",
                           plot::quoted(command.map.given() ? command.map.text : "Attractors on the balanced line"),
                           command.map.given() ? "'x'" : "'e'"),
               image, x, y);
}

void run_diagram(DiagramCommand& command, const CLI::App& app, const Common& common) {
  maps::DiagramOptions& options = command.options;
  command.plot.check(common);
  for (const char* option : {"--e", "--height"})
    if (!command.plot.given() && app.count(option) > 0) throw UsageError("{} has no effect without --plot", option);
  if (command.plot.path == "-" && app.count("--height") > 0) throw UsageError("--height has no effect with --plot -");
  options.map = command.map.family();
  options.mu = parse_mu(command.mu, options.map, !command.map.given() || app.count("--mu") > 0);
  options.threads = common.thread_count();
  for (const std::string& text : command.starts) {
    const auto start = parse_real(text);
    if (!start) throw UsageError("--start: expected a finite number, found {}", text);
    options.starts.push_back(*start);
  }
  maps::Axis axis{0, 0, command.height};
  if (!command.e.empty()) parse_interval("--e", command.e, axis);
  TextOutput output(common.output);
  const maps::Diagram found = maps::diagram(options);
  if (command.plot.given() && command.e.empty()) {
    axis.low = std::numeric_limits<double>::infinity();
    axis.high = -axis.low;
    for (const double e : found.e) // comparisons with nan are false
      axis.low = e < axis.low ? e : axis.low, axis.high = e > axis.high ? e : axis.high;
    if (!(axis.low <= axis.high)) throw Error("every orbit diverged: there is nothing to draw");
    const double margin = 0.02 * std::max(axis.high - axis.low, 1e-6);
    axis.low -= margin;
    axis.high += margin;
  }
  TableWriter table = table_writer(
      {{"mu", 0}, {"step"}, {command.map.given() ? "x" : "e", 0}, {"branch"}, {"branches"}}, common, output);
  const auto orbits = static_cast<std::size_t>(found.orbits), keep = static_cast<std::size_t>(options.keep);
  for (std::size_t i = 0; i < options.mu.size(); ++i) {
    const std::int64_t* branch = found.branch.data() + i * orbits;
    const std::int64_t branches = *std::max_element(branch, branch + orbits);
    std::int64_t written = 0;
    for (std::size_t orbit = 0; orbit < orbits; ++orbit) {
      if (branch[orbit] <= written) continue; // empty, diverged, or of an attractor whose rows are there
      written = branch[orbit];
      for (std::size_t n = 0; n < keep; ++n)
        table.row({mu_cell(options.map, options.mu[i]), options.transient + static_cast<std::int64_t>(n) + 1,
                   found.e[(i * orbits + orbit) * keep + n], written, branches});
    }
  }
  output.close();
  if (command.plot.given()) draw(command, found, axis);
}

} // namespace

Subcommand diagram_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<DiagramCommand>();
  CLI::App* app = add_diagram(parent, common, *command);
  return {app, [=, &common] { run_diagram(*command, *app, common); }};
}

} // namespace noether
