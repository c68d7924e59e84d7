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
  std::string mu = "0.8", size = "512", x, y, grid;
};

CLI::App* add_basins(CLI::App& app, Common& common, BasinsCommand& command) {
  CLI::App* basins = app.add_subcommand("basins", "What becomes of every start of a grid, and of how much of it");
  basins->footer("A row for each fate: its share of the grid, its area, and how far that may be off.\n"
                 "Example: noether bifurcate basins --mu 0.8 --size 1000 --plot basins.png\n"
                 "         noether bifurcate basins --over-mu --x 0:1.2 --y=-1.5:1.5 --grid minima.h5\n"
                 "         noether bifurcate basins --mu 0.2:1.8:9 --size 400 --plot stack.png");
  basins->add_option("--mu", command.mu, "lr s y, what the map depends on; of several, grids that are a stack over mu")
      ->type_name("X|FIRST:LAST:COUNT")
      ->capture_default_str();
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
plot::Image picture_of(const maps::Basins& basins, const maps::BasinOptions& options, std::int64_t layer) {
  const std::int64_t width = options.x.count, height = options.y.count;
  plot::Image image{width, height, std::vector<plot::Colour>(static_cast<std::size_t>(width * height))};
  const double scale = 1 / std::log1p(static_cast<double>(options.steps)), mu = maps::mu_of(options, layer);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const auto at = static_cast<std::size_t>((layer * height + y) * width + x);
      const double speed = 1 - std::log1p(basins.steps[at]) * scale;
      plot::Colour colour{0, 0, 0};
      if (basins.fate[at] == maps::Fate::converged) colour = plot::viridis(speed);
      if (basins.fate[at] == maps::Fate::periodic) colour = {230, 159, 0};
      if (basins.fate[at] == maps::Fate::diverged) {
        const auto grey = static_cast<std::uint8_t>(std::lround(110 + 140 * speed));
        colour = {grey, grey, grey};
      }
      if (!options.over_mu && mu > 0 && mu < 2 && x + 1 < width && y + 1 < height) {
        const auto inside = [&](std::int64_t i, std::int64_t j) {
          return maps::ellipse(mu, {options.x.at(i), options.y.at(j)}) < 0;
        };
        if (inside(x, y) != inside(x + 1, y) || inside(x, y) != inside(x, y + 1)) colour = {213, 45, 45};
      }
      image.pixels[static_cast<std::size_t>((height - 1 - y) * width + x)] = colour;
    }
  return image;
}

/// The fate of most points of each character's part of a grid.
std::vector<std::string> sketch(const maps::Basins& basins, const maps::BasinOptions& options, std::int64_t layer) {
  constexpr std::string_view kMarks = "?.o ";
  const std::int64_t width = std::min(kSketchWidth, options.x.count), height = std::min(kSketchHeight, options.y.count);
  std::vector<std::string> rows;
  for (std::int64_t row = height; row-- > 0;) {
    rows.emplace_back();
    for (std::int64_t column = 0; column < width; ++column) {
      std::array<std::int64_t, kMarks.size()> hits{};
      for (std::int64_t y = row * options.y.count / height; y < (row + 1) * options.y.count / height; ++y)
        for (std::int64_t x = column * options.x.count / width; x < (column + 1) * options.x.count / width; ++x)
          ++hits[static_cast<std::size_t>(
              basins.fate[static_cast<std::size_t>((layer * options.y.count + y) * options.x.count + x)])];
      rows.back() += kMarks[static_cast<std::size_t>(std::max_element(hits.begin(), hits.end()) - hits.begin())];
    }
  }
  return rows;
}

/// Grids above one another, the least mu at the bottom, seen from above and aside: each is a parallelogram with an
/// edge, and what diverged is not there, so that those below show through.
struct Stack {
  plot::Image image;
  std::vector<std::int64_t> rows; ///< of each layer's lower left corner in the picture, from its top
};
Stack stack_of(const maps::Basins& basins, const maps::BasinOptions& options) {
  const std::int64_t width = options.x.count, height = options.y.count, layers = maps::layers_of(options);
  const std::int64_t tall = (height + 1) / 2, aside = height / 2, gap = std::max<std::int64_t>(1, height / 4);
  Stack stack{{width + aside, tall + (layers - 1) * gap, {}}, {}};
  stack.image.pixels.assign(static_cast<std::size_t>(stack.image.width * stack.image.height),
                            plot::Colour{255, 255, 255});
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const plot::Image grid = picture_of(basins, options, layer);
    const std::int64_t bottom = stack.image.height - 1 - layer * gap;
    stack.rows.push_back(bottom);
    for (std::int64_t row = 0; row < tall; ++row) {
      const std::int64_t y = std::min(height - 1, 2 * row), shift = y / 2;
      for (std::int64_t x = 0; x < width; ++x) {
        const bool edge = row == 0 || row + 1 == tall || x == 0 || x + 1 == width;
        const plot::Colour colour = grid.pixels[static_cast<std::size_t>((height - 1 - y) * width + x)];
        // Of all that is drawn only the diverged are grey, and the undecided black.
        const bool grey = colour[0] == colour[1] && colour[1] == colour[2] && colour[0] > 0;
        if (grey && !edge) continue;
        stack.image.pixels[static_cast<std::size_t>((bottom - row) * stack.image.width + x + shift)] =
            grey ? plot::Colour{150, 150, 150} : colour;
      }
    }
  }
  return stack;
}

void draw(const BasinsCommand& command, const maps::Basins& found) {
  const maps::BasinOptions& options = command.options;
  const std::int64_t layers = maps::layers_of(options);
  const plot::Range x{options.x.low, options.x.high}, y{options.y.low, options.y.high};
  if (command.plot.path == "-") {
    std::string text;
    for (std::int64_t layer = layers; layer-- > 0;) {
      if (layers > 1) text += fmt::format("mu = {:g}\n", maps::mu_of(options, layer));
      text += plot::framed(sketch(found, options, layer), x, y);
    }
    TextOutput("-").write(text + "converged .   periodic o   undecided ?   diverged blank\n");
    return;
  }
  if (layers > 1) {
    const Stack stack = stack_of(found, options);
    if (command.plot.pixels()) {
      plot::write_png(command.plot.path, stack.image);
      return;
    }
    const auto width = static_cast<double>(stack.image.width), height = static_cast<double>(stack.image.height);
    std::string script = "set title 'Fates of starts (a0, b0), over mu'\nunset border\nunset xtics\nunset ytics\n"
                         "set lmargin 14\n";
    for (std::int64_t layer = 0; layer < layers; ++layer)
      script += fmt::format("set label 'mu = {:g}' at {}, {} right\n", maps::mu_of(options, layer), -0.01 * width,
                            height - static_cast<double>(stack.rows[static_cast<std::size_t>(layer)]));
    plot::draw(command.plot.path, script, stack.image, {0, width}, {0, height});
    return;
  }
  const plot::Image image = picture_of(found, options, 0);
  if (command.plot.pixels())
    plot::write_png(command.plot.path, image);
  else
    plot::draw(command.plot.path,
               options.over_mu ? "set title 'Fates of starts beside the zero-error curve'\nset xlabel 'mu'\nset ylabel "
                                 "'imbalance w0'\nset tics out"
                               : fmt::format("set title 'Fates of starts at mu = {}'\nset xlabel 'a0'\nset ylabel "
                                             "'b0'\nset tics out",
                                             options.mu),
               image, x, y);
}

void write_grid(const std::string& path, const maps::Basins& basins, const maps::BasinOptions& options,
                const Common& common) {
  store::FileWriter file(store::kTensorsFile);
  store::Shape shape{static_cast<std::uint64_t>(options.y.count), static_cast<std::uint64_t>(options.x.count)};
  if (!options.stack.empty()) shape.insert(shape.begin(), options.stack.size());
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
  if (!options.stack.empty())
    file.array("/basins/mu", options.stack);
  else if (!options.over_mu)
    file.attribute("/basins", "mu", options.mu);
  store::OutputStream output(path);
  output.write(std::move(file), {to_json(provenance_record(common, false))});
  output.close();
}

void run_basins(BasinsCommand& command, const CLI::App& app, const Common& common) {
  maps::BasinOptions& options = command.options;
  command.plot.check(common);
  if (options.over_mu && app.count("--mu") > 0) throw UsageError("--mu has no effect with --over-mu");
  if (!options.over_mu && app.count("--offset") > 0) throw UsageError("--offset has no effect without --over-mu");
  const std::vector<double> mu = parse_values("--mu", command.mu);
  options.mu = mu.front();
  if (mu.size() > 1) options.stack = mu;
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
  TableWriter table =
      table_writer({{"fate"}, {"points"}, {"fraction"}, {"area"}, {"area_error", 2}, {"mu", 0}}, common, output);
  for (std::int64_t layer = 0; layer < maps::layers_of(options); ++layer)
    for (const maps::Area& area : maps::areas(found, options, layer))
      table.row({maps::name_of(area.fate), area.cells, area.fraction, area.area, area.error,
                 options.over_mu ? Cell() : Cell(maps::mu_of(options, layer))});
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
