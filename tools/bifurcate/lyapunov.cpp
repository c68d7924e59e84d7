// bifurcate lyapunov. Exponents of growth along and across the balanced line or the ellipse.
#include "bifurcate/map_option.h"
#include "bifurcate/plot_option.h"

#include "maps/lyapunov.h"
#include "maps/phases.h"
#include "maps/two_factor.h"

namespace noether {

namespace {

struct LyapunovCommand {
  PlotOption plot;
  MapOption map;
  std::string mu, locus = "balanced";
  maps::LyapunovOptions options;
};

CLI::App* add_lyapunov(CLI::App& app, Common& common, LyapunovCommand& command) {
  CLI::App* lyapunov =
      app.add_subcommand("lyapunov", "Exponents along and across the balanced line or the ellipse, or of another map");
  lyapunov->footer("Example: noether bifurcate lyapunov --mu 2\n"
                   "         noether bifurcate lyapunov --mu 1:2:1000 -o exponents.tsv\n"
                   "         noether bifurcate lyapunov --map 'mu x (1 - x)' --mu 4");
  command.map.add(*lyapunov);
  lyapunov->add_option("--mu", command.mu, "One value, or COUNT of them from FIRST to LAST")
      ->type_name("X|FIRST:LAST:COUNT");
  add_choice(*lyapunov, "--on", command.locus, {"balanced", "ellipse"}, "Where the orbits run: a = b, or the ellipse");
  add_count(*lyapunov, "--blocks", command.options.blocks, "Orbits, each from a start of its own", 1, 1 << 20);
  add_count(*lyapunov, "--transient", command.options.transient, "Steps before the exponent is taken", 0);
  add_count(*lyapunov, "--steps", command.options.steps, "Steps of each orbit that it is taken over");
  command.plot.add(*lyapunov, "Draw the exponents against mu, in bands of two standard errors");
  add_seed(*lyapunov, common);
  add_threads(*lyapunov, common);
  add_json(*lyapunov, common);
  add_output(*lyapunov, common, "Where the table goes");
  return lyapunov;
}

/// Exponents against mu, a curve each, in the order of mu.
class Exponents {
public:
  explicit Exponents(std::vector<std::string> titles) : titles_(std::move(titles)) {}
  void point(std::size_t curve, double mu, const maps::Exponent& found) {
    if (curve >= text_.size()) text_.resize(curve + 1);
    const double error = std::isnan(found.standard_error) ? 0 : found.standard_error;
    text_[curve] += fmt::format("{} {} {} {}\n", mu, plotted(found.value), plotted(found.value - 2 * error),
                                plotted(found.value + 2 * error));
  }
  void draw(const PlotOption& plot, const std::string& title) const {
    std::string script = fmt::format("set title {}\nset xlabel 'mu'\nset ylabel 'nats a step'\nset grid\n"
                                     "set xzeroaxis linetype 1\nset style fill transparent solid 0.3 noborder\n"
                                     "set datafile missing 'NaN'\nset key bottom right\n",
                                     plot::quoted(title)),
                curves;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      script += fmt::format("$curve{} << END\n{}END\n", i, text_[i]);
      curves += fmt::format("{}$curve{} using 1:3:4 with filledcurves linetype {} notitle, $curve{} using 1:2 with "
                            "linespoints linetype {} pointtype 7 pointsize 0.2 title {}",
                            i > 0 ? ", " : "plot ", i, i + 1, i, i + 1,
                            plot::quoted(i < titles_.size() ? titles_[i] : fmt::format("branch {}", i + 1)));
    }
    plot::draw(plot.path, script + curves + "\n");
  }

private:
  std::vector<std::string> titles_, text_;
};

/// A row for each attractor that the critical points find.
void run_map(const LyapunovCommand& command, const CLI::App& app, const Common& common) {
  if (app.count("--on") > 0) throw UsageError("--on has no effect with --map");
  const maps::Family family = command.map.family();
  const std::vector<double> values = parse_mu(command.mu, family, app.count("--mu") > 0);
  TextOutput output(common.output);
  TableWriter table = table_writer({{"mu", 0},
                                    {"branch"},
                                    {"starts"},
                                    {"phase"},
                                    {"exponent", 9},
                                    {"exponent_stderr", 2},
                                    {"blocks"},
                                    {"escaped"},
                                    {"superstable"}},
                                   common, output);
  Exponents exponents({});
  for (const double mu : values) {
    const maps::Polynomial map = family.at(mu);
    std::int64_t number = 0;
    for (const maps::Branch& branch : maps::branches(map, maps::critical_starts(map), {})) {
      const maps::Lyapunov found = maps::lyapunov(map, branch.start, command.options);
      exponents.point(static_cast<std::size_t>(number), mu, found.along);
      table.row({mu_cell(family, mu), ++number, branch.starts, std::string(maps::name_of(branch.attractor.phase)),
                 found.along.value, found.along.standard_error, found.blocks, found.escaped, found.superstable});
    }
  }
  output.close();
  if (command.plot.given()) exponents.draw(command.plot, "Lyapunov exponent of " + command.map.text);
}

void run_lyapunov(LyapunovCommand& command, const CLI::App& app, const Common& common) {
  command.plot.check(common);
  command.options.seed = common.seed;
  command.options.threads = common.thread_count();
  if (command.map.given()) {
    run_map(command, app, common);
    return;
  }
  command.options.locus = maps::locus_of(command.locus);
  const std::vector<double> values = parse_mu(command.mu, maps::balanced_line(), app.count("--mu") > 0);
  const bool on_ellipse = command.options.locus == maps::Locus::ellipse;
  for (const double mu : {values.front(), values.back()})
    if (on_ellipse && !(mu > 0 && mu < 2))
      throw UsageError("--mu: the ellipse is there for 0 < mu < 2, found {:g}", mu);
  TextOutput output(common.output);
  TableWriter table = table_writer({{"mu", 0},
                                    {"on"},
                                    {"along", 9},
                                    {"along_stderr", 2},
                                    {"across", 9},
                                    {"across_stderr", 2},
                                    {"across_exact", 9},
                                    {"blocks"},
                                    {"escaped"},
                                    {"superstable"}},
                                   common, output);
  Exponents exponents({"along", "across"});
  for (const double mu : values) {
    const maps::Lyapunov found = maps::lyapunov(mu, command.options);
    exponents.point(0, mu, found.along);
    exponents.point(1, mu, found.across);
    table.row({mu, command.locus, found.along.value, found.along.standard_error, found.across.value,
               found.across.standard_error, on_ellipse ? Cell(maps::ellipse_repulsion(mu)) : Cell(), found.blocks,
               found.escaped, found.superstable});
  }
  output.close();
  if (command.plot.given())
    exponents.draw(command.plot, "Lyapunov exponents on the " + std::string(on_ellipse ? "ellipse" : "balanced line"));
}

} // namespace

Subcommand lyapunov_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<LyapunovCommand>();
  CLI::App* app = add_lyapunov(parent, common, *command);
  return {app, [=, &common] { run_lyapunov(*command, *app, common); }};
}

} // namespace noether
