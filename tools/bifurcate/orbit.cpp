// bifurcate orbit. Where a start goes, step by step.
#include "bifurcate/subcommands.h"

#include "base/number.h"
#include "maps/two_factor.h"

#include <iostream>
#include <sstream>

namespace noether {

namespace {

struct OrbitCommand {
  double mu = 0.8, a = 0.5, b = 0.4;
  std::int64_t steps = 100;
};

CLI::App* add_orbit(CLI::App& app, Common& common, OrbitCommand& command) {
  CLI::App* orbit = app.add_subcommand("orbit", "Where a start goes, step by step");
  orbit->footer("Without --mu each line of stdin is an orbit: mu, a0 and b0.\n"
                "Example: noether bifurcate orbit --mu 1.1 --a 0.9 --b 0.7 --steps 20\n"
                "         seq 0.1 0.1 1.9 | sed 's/$/ 0.5 0.4/' | noether bifurcate orbit --steps 5");
  add_real(*orbit, "--mu", command.mu, "lr s y, what the map depends on")->default_str("");
  add_real(*orbit, "--a", command.a, "Start of the first factor");
  add_real(*orbit, "--b", command.b, "Start of the second");
  add_count(*orbit, "--steps", command.steps, "Steps; an orbit that diverges ends earlier");
  add_json(*orbit, common);
  add_output(*orbit, common, "Where the table goes");
  return orbit;
}

void run_orbit(const OrbitCommand& command, const CLI::App& app, const Common& common) {
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  const auto follow = [&](std::int64_t number, double mu, maps::Point p) {
    if (!table)
      table = table_writer(
          {{"orbit"}, {"mu", 0}, {"step"}, {"a", 0}, {"b", 0}, {"e", 0}, {"w", 0}, {"loss", 0}, {"ellipse", 0}}, common,
          output);
    for (std::int64_t n = 0; n <= command.steps; ++n) {
      const double e = maps::error_of(mu, p);
      table->row({number, mu, n, p.a, p.b, e, maps::imbalance_of(p), e * e / 2, maps::ellipse(mu, p)});
      if (maps::escaped(p)) break;
      maps::step(p.a, p.b, mu);
    }
  };
  if (app.count("--mu") > 0) {
    follow(0, command.mu, {command.a, command.b});
  } else {
    for (const char* option : {"--a", "--b"})
      if (app.count(option) > 0) throw UsageError("{} has no effect without --mu", option);
    std::int64_t number = 0;
    for (std::string line; std::getline(std::cin, line); ++number) {
      std::istringstream words(line);
      std::string mu, a, b, more;
      words >> mu >> a >> b >> more;
      const auto x = parse_real(mu), y = parse_real(a), z = parse_real(b);
      if (!x || !y || !z || !more.empty())
        throw Error("stdin: line {}: expected mu, a0 and b0, found {}", number + 1, line.empty() ? "nothing" : line);
      follow(number, *x, {*y, *z});
    }
    if (number == 0) throw Error("stdin: empty; give mu, a0 and b0 a line, or --mu");
  }
  output.close();
}

} // namespace

Subcommand orbit_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<OrbitCommand>();
  CLI::App* app = add_orbit(parent, common, *command);
  return {app, [=, &common] { run_orbit(*command, *app, common); }};
}

} // namespace noether
