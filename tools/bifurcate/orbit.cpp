// bifurcate orbit. Where a start goes, step by step.
#include "bifurcate/plot_option.h"

#include "base/number.h"
#include "maps/several.h"
#include "maps/two_factor.h"

#include <iostream>
#include <sstream>

namespace noether {

namespace {

struct OrbitCommand {
  double mu = 0.8, a = 0.5, b = 0.4;
  std::int64_t steps = 100;
  PlotOption plot;
  std::string mus, scales;
  bool separate = false;
};

CLI::App* add_orbit(CLI::App& app, Common& common, OrbitCommand& command) {
  CLI::App* orbit = app.add_subcommand("orbit", "Where a start goes, step by step");
  orbit->footer("Without --mu each line of stdin is an orbit: mu, a0 and b0.\n"
                "Example: noether bifurcate orbit --mu 1.1 --a 0.9 --b 0.7 --steps 20\n"
                "         seq 0.1 0.1 1.9 | sed 's/$/ 0.5 0.4/' | noether bifurcate orbit --steps 5\n"
                "         noether bifurcate orbit --mus 0.4,0.9,1.3 --separate --a 0.5 --b 0.3");
  add_real(*orbit, "--mu", command.mu, "lr s y, what the map depends on")->default_str("");
  add_real(*orbit, "--a", command.a, "Start of the first factor");
  add_real(*orbit, "--b", command.b, "Start of the second");
  orbit->add_option("--mus", command.mus, "Several prompts at once: lr s y of each")->type_name("X,X,...");
  orbit->add_option("--scales", command.scales, "Of --mus: s of each in some unit; by default 1 of all")
      ->type_name("X,X,...");
  orbit->add_flag("--separate", command.separate, "Of --mus: a second factor b for each prompt, not one for all");
  add_count(*orbit, "--steps", command.steps, "Steps; an orbit that diverges ends earlier");
  command.plot.add(*orbit, "Draw the error e of each orbit, or of each prompt, step by step");
  add_json(*orbit, common);
  add_output(*orbit, common, "Where the table goes");
  return orbit;
}

std::vector<double> parse_list(const std::string& option, const std::string& text) {
  std::vector<double> values;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const auto value = parse_real(part);
    if (!value) throw UsageError("{}: expected numbers with commas between them, found {}", option, text);
    values.push_back(*value);
  }
  return values;
}

/// Errors against steps, a curve each.
class Curves {
public:
  void begin(const std::string& title) {
    if (!titles_.empty()) text_ += "e\n";
    titles_.push_back(title);
  }
  void point(std::int64_t step, double error) { text_ += fmt::format("{} {}\n", step, plotted(error)); }
  void draw(const PlotOption& plot, const std::string& title) const {
    // An orbit's last step before it is gone would hide the others.
    std::string script = fmt::format("set title {}\nset xlabel 'step'\nset ylabel 'error'\nset grid\n"
                                     "set xzeroaxis\nset yrange [-10<*:*<10]\nplot ",
                                     plot::quoted(title));
    for (std::size_t i = 0; i < titles_.size(); ++i)
      script += fmt::format("{}'-' with linespoints pointtype 7 pointsize 0.3 {}", i > 0 ? ", " : "",
                            titles_.size() > 12 ? "notitle" : "title " + plot::quoted(titles_[i]));
    plot::draw(plot.path, script + "\n" + text_ + "e\n");
  }

private:
  std::vector<std::string> titles_;
  std::string text_;
};

/// Several prompts: of one pair of factors the effective map, of separate ones their own.
void run_prompts(const OrbitCommand& command, const CLI::App& app, const Common& common) {
  if (app.count("--mu") > 0) throw UsageError("--mu has no effect with --mus");
  maps::Prompts prompts{parse_list("--mus", command.mus), parse_list("--scales", command.scales)};
  const bool scaled = !command.scales.empty();
  if (!scaled) prompts.scales.assign(prompts.mus.size(), 1);
  if (prompts.scales.size() != prompts.mus.size())
    throw UsageError("--scales: expected {} numbers, as --mus has, found {}", prompts.mus.size(),
                     prompts.scales.size());
  for (const double scale : prompts.scales)
    if (scale == 0) throw UsageError("--scales: expected numbers other than 0, found {}", command.scales);
  TextOutput output(common.output);
  std::vector<std::vector<double>> course;
  if (command.separate) {
    TableWriter table =
        table_writer({{"mu", 0}, {"step"}, {"a", 0}, {"b", 0}, {"along", 0}, {"beside", 0}, {"loss", 0}, {"errors", 0}},
                     common, output);
    maps::Separate state{command.a, std::vector<double>(prompts.mus.size(), command.b)};
    for (std::int64_t n = 0; n <= command.steps; ++n) {
      const maps::Parts parts = maps::parts_of(prompts, state);
      const std::vector<double> errors = maps::errors(prompts, state);
      course.push_back(errors);
      const auto known = [&](double value) { return scaled ? Cell() : Cell(value); };
      table.row({known(parts.length), n, state.a, state.b, known(parts.along), known(parts.beside),
                 maps::loss_of(errors), errors});
      bool gone = false;
      for (const double b : state.b) gone = gone || maps::escaped({state.a, b});
      if (gone) break;
      maps::step(prompts, state);
    }
  } else {
    TableWriter table = table_writer(
        {{"mu", 0}, {"step"}, {"a", 0}, {"b", 0}, {"e", 0}, {"w", 0}, {"loss", 0}, {"floor", 0}, {"errors", 0}}, common,
        output);
    const maps::Shared shared = maps::shared(prompts);
    maps::Point p{command.a, command.b};
    for (std::int64_t n = 0; n <= command.steps; ++n) {
      const std::vector<double> errors = maps::errors(prompts, shared, p);
      course.push_back(errors);
      table.row({shared.mu, n, p.a, p.b, maps::error_of(shared.mu, p), maps::imbalance_of(p), maps::loss_of(errors),
                 shared.floor, errors});
      if (maps::escaped(p)) break;
      maps::step(p.a, p.b, shared.mu);
    }
  }
  output.close();
  if (!command.plot.given()) return;
  Curves curves;
  for (std::size_t i = 0; i < prompts.mus.size(); ++i) {
    curves.begin(fmt::format("prompt {}: {}", i + 1, prompts.mus[i]));
    for (std::size_t n = 0; n < course.size(); ++n) curves.point(static_cast<std::int64_t>(n), course[n][i]);
  }
  curves.draw(command.plot, "Errors of several prompts");
}

void run_orbit(OrbitCommand& command, const CLI::App& app, const Common& common) {
  command.plot.check(common);
  for (const char* option : {"--scales", "--separate"})
    if (command.mus.empty() && app.count(option) > 0) throw UsageError("{} has no effect without --mus", option);
  if (!command.mus.empty()) {
    run_prompts(command, app, common);
    return;
  }
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  Curves curves;
  const auto follow = [&](std::int64_t number, double mu, maps::Point p) {
    if (!table)
      table = table_writer(
          {{"orbit"}, {"mu", 0}, {"step"}, {"a", 0}, {"b", 0}, {"e", 0}, {"w", 0}, {"loss", 0}, {"ellipse", 0}}, common,
          output);
    if (command.plot.given()) curves.begin(fmt::format("mu = {}", mu));
    for (std::int64_t n = 0; n <= command.steps; ++n) {
      const double e = maps::error_of(mu, p);
      if (command.plot.given()) curves.point(n, e);
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
  if (command.plot.given()) curves.draw(command.plot, "Orbits of the two-factor map");
}

} // namespace

Subcommand orbit_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<OrbitCommand>();
  CLI::App* app = add_orbit(parent, common, *command);
  return {app, [=, &common] { run_orbit(*command, *app, common); }};
}

} // namespace noether
