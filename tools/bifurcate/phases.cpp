// bifurcate phases. What training does at each mu, and the thresholds between phases.
#include "bifurcate/map_option.h"
#include "bifurcate/plot_option.h"

#include "maps/phases.h"
#include "maps/windows.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace noether {

namespace {

struct PhasesCommand {
  PlotOption plot;
  MapOption map;
  std::string mu;
  std::int64_t doublings = 8;
  bool windows = false;
  maps::PhaseOptions options;
};

CLI::App* add_phases(CLI::App& app, Common& common, PhasesCommand& command) {
  CLI::App* phases = app.add_subcommand("phases", "What training does at each mu, and where that changes");
  phases->footer(
      "Without --mu: the thresholds between phases, beside their closed forms, with the ratio of the distances\n"
      "between period doublings, which approaches Feigenbaum's 4.669.\n"
      "Example: noether bifurcate phases\n"
      "         noether bifurcate phases --mu 0.1:2.1:201\n"
      "         noether bifurcate phases --windows\n"
      "         noether bifurcate phases --map 'mu x (1 - x)' --mu 2.8:4:1201\n"
      "         noether bifurcate phases --map 'mu x (1 - x)' --mu 2.8:4 --doublings 8");
  command.map.add(*phases);
  phases->add_option("--mu", command.mu, "Classify these: one value, or COUNT of them from FIRST to LAST")
      ->type_name("X|FIRST:LAST:COUNT");
  add_count(*phases, "--doublings", command.doublings,
            "Period doublings that are looked for; of a --map those of the cycle at the low end of --mu LOW:HIGH", 1,
            12);
  phases->add_flag("--windows", command.windows,
                   "The periodic windows in --mu LOW:HIGH (1.24:2 by default), up to --longest (8 by default)");
  add_count(*phases, "--transient", command.options.transient, "Steps before an attractor is looked for");
  add_count(*phases, "--steps", command.options.steps, "Steps of the exponent");
  add_count(*phases, "--longest", command.options.longest, "Longest period that is looked for", 1, 1 << 16);
  add_real(*phases, "--tolerance", command.options.tolerance, "Within which a cycle must close", 0, 1, true);
  command.plot.add(*phases, "Draw the exponent at each --mu in the colour of its phase");
  add_threads(*phases, common);
  add_json(*phases, common);
  add_output(*phases, common, "Where the table goes");
  return phases;
}

/// LOW:HIGH, or LOW:HIGH:COUNT for as many steps of a search.
void parse_range(const std::string& text, maps::WindowOptions& options) {
  const std::size_t first = text.find(':');
  if (first != std::string::npos && text.find(':', first + 1) != std::string::npos) {
    const std::vector<double> values = parse_values("--mu", text);
    options.low = values.front();
    options.high = values.back();
    options.count = static_cast<std::int64_t>(values.size()) - 1;
    return;
  }
  maps::Axis axis;
  parse_interval("--mu", text, axis);
  options.low = axis.low;
  options.high = axis.high;
}

/// Options that say something of attractors at single values of mu alone.
void refuse(const CLI::App& app, std::initializer_list<const char*> options, const std::string& with) {
  for (const char* option : options)
    if (app.count(option) > 0) throw UsageError("{} has no effect {}", option, with);
}

/// Exponents against mu, a colour for each phase; what is below the picture, or diverged, at its lower edge.
class PhasePlot {
public:
  void point(double mu, const maps::Attractor& found) {
    constexpr double kFloor = -3;
    const bool gone = found.phase == maps::Phase::divergent;
    text_[static_cast<std::size_t>(found.phase)] +=
        fmt::format("{} {}\n", mu, gone ? kFloor : std::max(kFloor, found.exponent));
  }
  void draw(const PlotOption& plot, const std::string& title) const {
    constexpr std::array kColours{"#21918c", "#90d743", "#e69f00", "#440154", "#bbbbbb", "#d52d2d"};
    std::string script = fmt::format("set title {}\nset xlabel 'mu'\nset ylabel 'exponent, nats a step'\nset grid\n"
                                     "set xzeroaxis linetype 1\nset key bottom right\n",
                                     plot::quoted(title)),
                curves, data;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i].empty()) continue;
      curves += fmt::format("{}'-' with points pointtype 7 pointsize 0.4 linecolor rgb '{}' title '{}'",
                            curves.empty() ? "plot " : ", ", kColours[i], maps::name_of(static_cast<maps::Phase>(i)));
      data += text_[i] + "e\n";
    }
    plot::draw(plot.path, script + curves + "\n" + data);
  }

private:
  std::array<std::string, 6> text_;
};

void run_windows(const PhasesCommand& command, const CLI::App& app, const Common& common) {
  refuse(app, {"--doublings", "--transient", "--steps", "--tolerance", "--plot"}, "with --windows");
  const maps::Family family = command.map.family();
  if (!family.has_mu()) throw UsageError("--windows has no effect on a map without mu in it");
  if (command.map.given() && command.mu.empty()) throw UsageError("--windows: expected --mu LOW:HIGH beside --map");
  maps::WindowOptions options{.low = 1.24, .high = 2, .count = 20000, .threads = common.thread_count()};
  if (!command.mu.empty()) parse_range(command.mu, options);
  if (app.count("--longest") > 0) options.longest = command.options.longest;
  if (options.longest < 2 || options.longest > 32)
    throw UsageError("--longest: expected 2 to 32 with --windows, found {}", options.longest);
  TextOutput output(common.output);
  TableWriter table = table_writer({{"period"},
                                    {"within"},
                                    {"opening"},
                                    {"opens", 13},
                                    {"superstable", 13},
                                    {"doubles", 13},
                                    {"accumulates", 13},
                                    {"accumulates_error", 2},
                                    {"closing"},
                                    {"closes", 13},
                                    {"width"}},
                                   common, output);
  const auto known = [](const std::optional<double>& value) { return value ? Cell(*value) : Cell(); };
  for (const maps::Window& window : maps::windows(family, options))
    table.row({window.period, window.within > 0 ? Cell(window.within) : Cell(), "tangent", window.opens,
               window.superstable, window.doubles, known(window.accumulates), known(window.accumulates_error),
               window.closes ? Cell("crisis") : Cell(), known(window.closes),
               window.closes ? Cell(std::abs(*window.closes - window.opens)) : Cell()});
  output.close();
}

void run_doublings(const PhasesCommand& command, const CLI::App& app, const Common& common) {
  refuse(app, {"--transient", "--steps", "--longest", "--tolerance", "--plot", "--threads"}, "with --doublings");
  const maps::Family family = command.map.family();
  if (command.mu.empty() || !family.has_mu())
    throw UsageError("--doublings: expected --mu LOW:HIGH and a --map with mu in it");
  maps::WindowOptions range;
  parse_range(command.mu, range);
  TextOutput output(common.output);
  TableWriter table = table_writer({{"from"}, {"to"}, {"mu", 14}, {"ratio", 7}}, common, output);
  const std::vector<maps::Doubling> found = maps::doublings(family, range.low, range.high, command.doublings);
  for (std::size_t i = 0; i < found.size(); ++i)
    table.row({fmt::format("period {}", found[i].period), fmt::format("period {}", 2 * found[i].period), found[i].mu,
               i >= 2 ? Cell((found[i - 1].mu - found[i - 2].mu) / (found[i].mu - found[i - 1].mu)) : Cell()});
  output.close();
}

/// A row for each attractor that the critical points find, and one for those that diverge.
void run_map(const PhasesCommand& command, const CLI::App& app, const Common& common) {
  if (app.count("--doublings") > 0) {
    run_doublings(command, app, common);
    return;
  }
  const maps::Family family = command.map.family();
  const std::vector<double> values = parse_mu(command.mu, family, app.count("--mu") > 0);
  TextOutput output(common.output);
  TableWriter table = table_writer(
      {{"mu", 0}, {"branch"}, {"starts"}, {"phase"}, {"period"}, {"exponent"}, {"x"}, {"escaped_at"}}, common, output);
  PhasePlot picture;
  for (const double mu : values) {
    const maps::Polynomial map = family.at(mu);
    std::int64_t number = 0;
    for (const maps::Branch& branch : maps::branches(map, maps::critical_starts(map), command.options)) {
      const maps::Attractor& found = branch.attractor;
      picture.point(mu, found);
      const bool gone = found.phase == maps::Phase::divergent;
      table.row({mu_cell(family, mu), ++number, branch.starts, std::string(maps::name_of(found.phase)),
                 found.period > 0 ? Cell(found.period) : Cell(), gone ? Cell() : Cell(found.exponent),
                 gone ? Cell() : Cell(found.e), gone ? Cell(found.escaped) : Cell()});
    }
  }
  output.close();
  if (command.plot.given()) picture.draw(command.plot, "Phases of " + command.map.text);
}

void run_phases(PhasesCommand& command, const CLI::App& app, const Common& common) {
  command.plot.check(common);
  if (command.windows) {
    run_windows(command, app, common);
    return;
  }
  if (command.map.given()) {
    run_map(command, app, common);
    return;
  }
  const std::vector<double> values = command.mu.empty() ? std::vector<double>{} : parse_values("--mu", command.mu);
  for (const char* option : {"--transient", "--steps", "--longest", "--tolerance", "--plot"})
    if (values.empty() && app.count(option) > 0) throw UsageError("{} has no effect without --mu", option);
  if (!values.empty() && app.count("--doublings") > 0) throw UsageError("--doublings has no effect with --mu");
  if (!values.empty() && !(values.front() > 0))
    throw UsageError("--mu: phases are defined for mu above 0, found {:g}", values.front());
  TextOutput output(common.output);
  PhasePlot picture;
  if (values.empty()) {
    TableWriter table = table_writer(
        {{"from"}, {"to"}, {"mu", 14}, {"closed_form", 14}, {"difference", 2}, {"ratio", 7}}, common, output);
    const std::vector<maps::Threshold> found = maps::thresholds(command.doublings);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool known = !std::isnan(found[i].closed_form);
      // Of the last distance between doublings to this one; the first row and the last are no doublings.
      const bool third = i >= 3 && i + 1 < found.size();
      table.row({found[i].from, found[i].to, found[i].mu, known ? Cell(found[i].closed_form) : Cell(),
                 known ? Cell(found[i].mu - found[i].closed_form) : Cell(),
                 third ? Cell((found[i - 1].mu - found[i - 2].mu) / (found[i].mu - found[i - 1].mu)) : Cell()});
    }
  } else {
    TableWriter table =
        table_writer({{"mu", 0}, {"phase"}, {"period"}, {"exponent"}, {"e"}, {"escaped_at"}}, common, output);
    for (const double mu : values) {
      const maps::Attractor found = maps::classify(mu, command.options);
      picture.point(mu, found);
      const bool gone = found.phase == maps::Phase::divergent;
      table.row({mu, std::string(maps::name_of(found.phase)), found.period > 0 ? Cell(found.period) : Cell(),
                 gone ? Cell() : Cell(found.exponent), gone ? Cell() : Cell(found.e),
                 gone ? Cell(found.escaped) : Cell()});
    }
  }
  output.close();
  if (command.plot.given()) picture.draw(command.plot, "Phases on the balanced line");
}

} // namespace

Subcommand phases_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<PhasesCommand>();
  CLI::App* app = add_phases(parent, common, *command);
  return {app, [=, &common] { run_phases(*command, *app, common); }};
}

} // namespace noether
