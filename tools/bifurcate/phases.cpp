// bifurcate phases. What training does at each mu, and the thresholds between phases.
#include "bifurcate/map_option.h"

#include "maps/phases.h"

#include <cmath>

namespace noether {

namespace {

struct PhasesCommand {
  MapOption map;
  std::string mu;
  std::int64_t doublings = 8;
  maps::PhaseOptions options;
};

CLI::App* add_phases(CLI::App& app, Common& common, PhasesCommand& command) {
  CLI::App* phases = app.add_subcommand("phases", "What training does at each mu, and where that changes");
  phases->footer(
      "Without --mu: the thresholds between phases, beside their closed forms, with the ratio of the distances\n"
      "between period doublings, which approaches Feigenbaum's 4.669.\n"
      "Example: noether bifurcate phases\n"
      "         noether bifurcate phases --mu 0.1:2.1:201\n"
      "         noether bifurcate phases --map 'mu x (1 - x)' --mu 2.8:4:1201");
  command.map.add(*phases);
  phases->add_option("--mu", command.mu, "Classify these: one value, or COUNT of them from FIRST to LAST")
      ->type_name("X|FIRST:LAST:COUNT");
  add_count(*phases, "--doublings", command.doublings, "Period doublings that are looked for", 1, 12);
  add_count(*phases, "--transient", command.options.transient, "Steps before an attractor is looked for");
  add_count(*phases, "--steps", command.options.steps, "Steps of the exponent");
  add_count(*phases, "--longest", command.options.longest, "Longest period that is looked for", 1, 1 << 16);
  add_real(*phases, "--tolerance", command.options.tolerance, "Within which a cycle must close", 0, 1, true);
  add_json(*phases, common);
  add_output(*phases, common, "Where the table goes");
  return phases;
}

/// A row for each attractor that the critical points find, and one for those that diverge.
void run_map(const PhasesCommand& command, const CLI::App& app, const Common& common) {
  if (app.count("--doublings") > 0) throw UsageError("--doublings has no effect with --map");
  const maps::Family family = command.map.family();
  const std::vector<double> values = parse_mu(command.mu, family, app.count("--mu") > 0);
  TextOutput output(common.output);
  TableWriter table = table_writer(
      {{"mu", 0}, {"branch"}, {"starts"}, {"phase"}, {"period"}, {"exponent"}, {"x"}, {"escaped_at"}}, common, output);
  for (const double mu : values) {
    const maps::Polynomial map = family.at(mu);
    std::int64_t number = 0;
    for (const maps::Branch& branch : maps::branches(map, maps::critical_starts(map), command.options)) {
      const maps::Attractor& found = branch.attractor;
      const bool gone = found.phase == maps::Phase::divergent;
      table.row({mu_cell(family, mu), ++number, branch.starts, std::string(maps::name_of(found.phase)),
                 found.period > 0 ? Cell(found.period) : Cell(), gone ? Cell() : Cell(found.exponent),
                 gone ? Cell() : Cell(found.e), gone ? Cell(found.escaped) : Cell()});
    }
  }
  output.close();
}

void run_phases(const PhasesCommand& command, const CLI::App& app, const Common& common) {
  if (command.map.given()) {
    run_map(command, app, common);
    return;
  }
  const std::vector<double> values = command.mu.empty() ? std::vector<double>{} : parse_values("--mu", command.mu);
  for (const char* option : {"--transient", "--steps", "--longest", "--tolerance"})
    if (values.empty() && app.count(option) > 0) throw UsageError("{} has no effect without --mu", option);
  if (!values.empty() && app.count("--doublings") > 0) throw UsageError("--doublings has no effect with --mu");
  if (!values.empty() && !(values.front() > 0))
    throw UsageError("--mu: phases are defined for mu above 0, found {:g}", values.front());
  TextOutput output(common.output);
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
      const bool gone = found.phase == maps::Phase::divergent;
      table.row({mu, std::string(maps::name_of(found.phase)), found.period > 0 ? Cell(found.period) : Cell(),
                 gone ? Cell() : Cell(found.exponent), gone ? Cell() : Cell(found.e),
                 gone ? Cell(found.escaped) : Cell()});
    }
  }
  output.close();
}

} // namespace

Subcommand phases_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<PhasesCommand>();
  CLI::App* app = add_phases(parent, common, *command);
  return {app, [=, &common] { run_phases(*command, *app, common); }};
}

} // namespace noether
