// bifurcate basins. The fate of every start of a grid.
#include "bifurcate/plot_option.h"

#include "base/number.h"
#include "maps/basins.h"
#include "maps/two_factor.h"
#include "plot/image.h"
#include "store/writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace noether {

namespace {

struct BasinsCommand {
  maps::BasinOptions options;
  PlotOption plot;
  std::string size = "512", x, y, grid;
};

CLI::App* add_basins(CLI::App& app, Common& common, BasinsCommand& command) {
  CLI::App* basins = app.add_subcommand("basins", "What becomes of every start of a grid, and of how much of it");
  basins->footer("A row for each fate: its share of the grid, its area, and how far that may be off.\n"
                 "Example: noether bifurcate basins --mu 0.8 --size 1000 --plot basins.png\n"
                 "         noether bifurcate basins --over-mu --x 0:1.2 --y=-1.5:1.5 --grid minima.h5");
  add_real(*basins, "--mu", command.options.mu, "lr s y, what the map depends on");
  basins->add_flag(
      "--over-mu", command.options.over_mu,
      "x is mu, and y the imbalance w0 of a start --offset beside the zero-error curve; else x is a0, y b0");
  basins->add_option("--x", command.x, "Range of x; by default -3:3, over mu 0:2")->type_name("LOW:HIGH");
  basins->add_option("--y", command.y, "Range of y; by default -3:3")->type_name("LOW:HIGH");
  basins->add_option("--size", command.size, "Points: WIDTHxHEIGHT, or one number for both")
      ->type_name("N[xM]")
      ->capture_default_str();
  add_count(*basins, "--steps", command.options.steps, "Steps after which a point is undecided", 1, 4'000'000'000);
  add_count(*basins, "--longest", command.options.longest, "Longest period that is looked for", 1, 255);
  add_real(*basins, "--tolerance", command.options.tolerance, "|e| of what has converged; of a cycle's closing", 0, 1,
           true);
  add_real(*basins, "--offset", command.options.offset, "Error that a start over mu begins with");
  command.plot.add(*basins, "A pixel for each point");
  command.plot.add_renamed(*basins);
  basins->add_option("--grid", command.grid, "An HDF5 file of every point's fate, steps and period")->type_name("FILE");
  add_threads(*basins, common);
  add_json(*basins, common);
  add_output(*basins, common, "Where the table goes");
  return basins;
}

/// Converged: yellow where it was quick, blue where it was slow. Diverged: white to grey. Periodic: orange. Undecided:
/// black. The invariant ellipse: a red line.
plot::Image picture_of(const maps::Basins& basins, const maps::BasinOptions& options) {
  const std::int64_t width = options.x.count, height = options.y.count;
  plot::Image image{width, height, std::vector<plot::Colour>(static_cast<std::size_t>(width * height))};
  const double scale = 1 / std::log1p(static_cast<double>(options.steps));
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const auto at = static_cast<std::size_t>(y * width + x);
      const double speed = 1 - std::log1p(basins.steps[at]) * scale;
      plot::Colour colour{0, 0, 0};
      if (basins.fate[at] == maps::Fate::converged) colour = plot::viridis(speed);
      if (basins.fate[at] == maps::Fate::periodic) colour = {230, 159, 0};
      if (basins.fate[at] == maps::Fate::diverged) {
        const auto grey = static_cast<std::uint8_t>(std::lround(110 + 140 * speed));
        colour = {grey, grey, grey};
      }
      if (!options.over_mu && options.mu > 0 && options.mu < 2 && x + 1 < width && y + 1 < height) {
        const auto inside = [&](std::int64_t i, std::int64_t j) {
          return maps::ellipse(options.mu, {options.x.at(i), options.y.at(j)}) < 0;
        };
        if (inside(x, y) != inside(x + 1, y) || inside(x, y) != inside(x, y + 1)) colour = {213, 45, 45};
      }
      image.pixels[static_cast<std::size_t>((height - 1 - y) * width + x)] = colour;
    }
  return image;
}

/// The fate of most points of each character's part of the grid.
std::vector<std::string> sketch(const maps::Basins& basins, const maps::BasinOptions& options) {
  constexpr std::string_view kMarks = "?.o ";
  const std::int64_t width = std::min(kSketchWidth, options.x.count), height = std::min(kSketchHeight, options.y.count);
  std::vector<std::string> rows;
  for (std::int64_t row = height; row-- > 0;) {
    rows.emplace_back();
    for (std::int64_t column = 0; column < width; ++column) {
      std::array<std::int64_t, kMarks.size()> hits{};
      for (std::int64_t y = row * options.y.count / height; y < (row + 1) * options.y.count / height; ++y)
        for (std::int64_t x = column * options.x.count / width; x < (column + 1) * options.x.count / width; ++x)
          ++hits[static_cast<std::size_t>(basins.fate[static_cast<std::size_t>(y * options.x.count + x)])];
      rows.back() += kMarks[static_cast<std::size_t>(std::max_element(hits.begin(), hits.end()) - hits.begin())];
    }
  }
  return rows;
}

void draw(const BasinsCommand& command, const maps::Basins& found) {
  const maps::BasinOptions& options = command.options;
  const plot::Range x{options.x.low, options.x.high}, y{options.y.low, options.y.high};
  if (command.plot.path == "-") {
    TextOutput("-").write(plot::framed(sketch(found, options), x, y) +
                          "converged .   periodic o   undecided ?   diverged blank\n");
    return;
  }
  const plot::Image image = picture_of(found, options);
  if (command.plot.pixels())
    plot::write_png(command.plot.path, image);
  else
    plot::draw(command.plot.path,
               options.over_mu ? "set title 'Fates of starts beside the zero-error curve'\nset xlabel 'mu'\nset ylabel "
                                 "'imbalance w0'"
                               : fmt::format("set title 'Fates of starts at mu = {}'\nset xlabel 'a0'\nset ylabel 'b0'",
                                             options.mu),
               image, x, y);
}

void write_grid(const std::string& path, const maps::Basins& basins, const maps::BasinOptions& options,
                const Common& common) {
  store::FileWriter file(store::kTensorsFile);
  const store::Shape shape{static_cast<std::uint64_t>(options.y.count), static_cast<std::uint64_t>(options.x.count)};
  file.array("/basins/fate", store::Type::u8, shape, basins.fate.data());
  file.array("/basins/steps", store::Type::u32, shape, basins.steps.data());
  file.array("/basins/period", store::Type::u8, shape, basins.period.data());
  for (const maps::Fate fate :
       {maps::Fate::undecided, maps::Fate::converged, maps::Fate::periodic, maps::Fate::diverged})
    file.attribute("/basins/fate", maps::name_of(fate), static_cast<std::int64_t>(fate));
  for (const auto& [name, axis] : {std::pair{"/basins/x", &options.x}, std::pair{"/basins/y", &options.y}}) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < axis->count; ++i) values.push_back(axis->at(i));
    file.array(name, values);
  }
  if (!options.over_mu) file.attribute("/basins", "mu", options.mu);
  store::OutputStream output(path);
  output.write(std::move(file), {to_json(provenance_record(common, false))});
  output.close();
}

void run_basins(BasinsCommand& command, const CLI::App& app, const Common& common) {
  maps::BasinOptions& options = command.options;
  command.plot.check(common);
  if (options.over_mu && app.count("--mu") > 0) throw UsageError("--mu has no effect with --over-mu");
  if (!options.over_mu && app.count("--offset") > 0) throw UsageError("--offset has no effect without --over-mu");
  if (options.over_mu) options.x = {0, 2, 0};
  if (!command.x.empty()) parse_interval("--x", command.x, options.x);
  if (!command.y.empty()) parse_interval("--y", command.y, options.y);
  const std::size_t cross = command.size.find('x');
  const auto width = parse_count(command.size.substr(0, cross));
  const auto height = cross == std::string::npos ? width : parse_count(command.size.substr(cross + 1));
  if (!width || !height || *width < 1 || *height < 1 || *width > 1'000'000 || *height > 1'000'000)
    throw UsageError("--size: expected N or WIDTHxHEIGHT up to 1000000, found {}", command.size);
  options.x.count = static_cast<std::int64_t>(*width);
  options.y.count = static_cast<std::int64_t>(*height);
  options.threads = common.thread_count();
  TextOutput output(common.output);
  Reporter reporter("bifurcate", common.verbosity(), common.progress_mode());
  const maps::Basins found = maps::basins(options, reporter);
  if (!command.grid.empty()) write_grid(command.grid, found, options, common);
  TableWriter table = table_writer({{"fate"}, {"points"}, {"fraction"}, {"area"}, {"area_error", 2}}, common, output);
  for (const maps::Area& area : maps::areas(found, options))
    table.row({maps::name_of(area.fate), area.cells, area.fraction, area.area, area.error});
  output.close();
  if (command.plot.given()) draw(command, found);
}

} // namespace

Subcommand basins_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<BasinsCommand>();
  CLI::App* app = add_basins(parent, common, *command);
  return {app, [=, &common] { run_basins(*command, *app, common); }};
}

} // namespace noether
