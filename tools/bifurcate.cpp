// bifurcate: the two-factor map of large-step training: orbits, phases, exponents, diagrams, basins.
#include "common.h"

#include "base/number.h"
#include "maps/basins.h"
#include "maps/diagram.h"
#include "maps/lyapunov.h"
#include "maps/phases.h"
#include "maps/series.h"
#include "maps/switching.h"
#include "maps/two_factor.h"
#include "plot/image.h"
#include "regression/prompts.h"
#include "store/writer.h"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

using namespace noether;

/// "0.8", or "0.1:2:20": so many values from the first to the last, both included.
std::vector<double> parse_values(const std::string& option, const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  const double nan = std::numeric_limits<double>::quiet_NaN(); // what is missing fails every comparison
  const double first = parse_real(parts.empty() ? "" : parts[0]).value_or(nan);
  if (parts.size() == 1 && !std::isnan(first)) return {first};
  const double last = parse_real(parts.size() == 3 ? parts[1] : "").value_or(nan);
  const auto count = static_cast<std::int64_t>(parse_count(parts.size() == 3 ? parts[2] : "").value_or(0));
  if (!(first < last) || count < 2 || count > 100'000'000)
    throw UsageError("{}: expected a number, or FIRST:LAST:COUNT with 2 or more in rising order, found {}", option,
                     text);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(first + (last - first) * static_cast<double>(i) / static_cast<double>(count - 1));
  return values;
}

/// "-3:3": from the lower edge to the upper.
void parse_interval(const std::string& option, const std::string& text, maps::Axis& axis) {
  const std::size_t colon = text.find(':');
  const auto low = parse_real(text.substr(0, colon));
  const auto high = colon == std::string::npos ? std::nullopt : parse_real(text.substr(colon + 1));
  if (!low || !high || !(*low < *high)) throw UsageError("{}: expected LOW:HIGH, found {}", option, text);
  axis.low = *low;
  axis.high = *high;
}

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

struct LyapunovCommand {
  std::string mu, locus = "balanced";
  maps::LyapunovOptions options;
};

CLI::App* add_lyapunov(CLI::App& app, Common& common, LyapunovCommand& command) {
  CLI::App* lyapunov = app.add_subcommand("lyapunov", "Exponents along and across the balanced line or the ellipse");
  lyapunov->footer("Example: noether bifurcate lyapunov --mu 2\n"
                   "         noether bifurcate lyapunov --mu 1:2:1000 -o exponents.tsv");
  lyapunov->add_option("--mu", command.mu, "One value, or COUNT of them from FIRST to LAST")
      ->type_name("X|FIRST:LAST:COUNT")
      ->required();
  add_choice(*lyapunov, "--on", command.locus, {"balanced", "ellipse"}, "Where the orbits run: a = b, or the ellipse");
  add_count(*lyapunov, "--blocks", command.options.blocks, "Orbits, each from a start of its own", 1, 1 << 20);
  add_count(*lyapunov, "--transient", command.options.transient, "Steps before the exponent is taken", 0);
  add_count(*lyapunov, "--steps", command.options.steps, "Steps of each orbit that it is taken over");
  add_seed(*lyapunov, common);
  add_threads(*lyapunov, common);
  add_json(*lyapunov, common);
  add_output(*lyapunov, common, "Where the table goes");
  return lyapunov;
}

void run_lyapunov(LyapunovCommand& command, const Common& common) {
  command.options.locus = maps::locus_of(command.locus);
  command.options.seed = common.seed;
  command.options.threads = common.thread_count();
  const std::vector<double> values = parse_values("--mu", command.mu);
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
  for (const double mu : values) {
    const maps::Lyapunov found = maps::lyapunov(mu, command.options);
    table.row({mu, command.locus, found.along.value, found.along.standard_error, found.across.value,
               found.across.standard_error, on_ellipse ? Cell(maps::ellipse_repulsion(mu)) : Cell(), found.blocks,
               found.escaped, found.superstable});
  }
  output.close();
}

struct PhasesCommand {
  std::string mu;
  bool thresholds = false;
  std::int64_t doublings = 8;
  maps::PhaseOptions options;
};

CLI::App* add_phases(CLI::App& app, Common& common, PhasesCommand& command) {
  CLI::App* phases = app.add_subcommand("phases", "What training does at each mu, and where that changes");
  phases->footer(
      "Without --mu: the thresholds between phases, beside their closed forms, with the ratio of the distances\n"
      "between period doublings, which approaches Feigenbaum's 4.669.\n"
      "Example: noether bifurcate phases\n"
      "         noether bifurcate phases --mu 0.1:2.1:201");
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

void run_phases(const PhasesCommand& command, const CLI::App& app, const Common& common) {
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

struct SwitchingCommand {
  maps::SwitchingOptions options;
  std::vector<std::string> batches;
  std::string draw = "gaussian", histogram;
};

CLI::App* add_switching(CLI::App& app, Common& common, SwitchingCommand& command) {
  CLI::App* switching =
      app.add_subcommand("switching", "Mini-batches: how often noise in the step drives training out");
  switching->footer("Each step draws its own map: kappa and nu are means over a batch of samples of mean 1 and mu.\n"
                    "Example: noether bifurcate switching --mu 0.8 --nu-deviation 0.6 --batch 1 --batch 4 --batch 16");
  add_real(*switching, "--mu", command.options.mu, "Mean of nu");
  add_real(*switching, "--nu-deviation", command.options.nu_deviation, "Standard deviation of a sample's nu", 0);
  add_real(*switching, "--kappa-deviation", command.options.kappa_deviation, "Standard deviation of a sample's kappa",
           0);
  add_choice(*switching, "--draw", command.draw, {"gaussian", "two-point"}, "Distribution of the samples");
  switching->add_option("--batch", command.batches, "Samples of a step; may be given again, a row for each")
      ->type_name("N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("1");
  add_real(*switching, "--a", command.options.a, "Where every orbit begins");
  add_real(*switching, "--b", command.options.b, "Its second factor");
  add_count(*switching, "--orbits", command.options.orbits, "Orbits", 1, 1'000'000'000);
  add_count(*switching, "--steps", command.options.steps, "Steps", 10, 1 << 30);
  switching->add_option("--histogram", command.histogram, "A table of the orbits that first escaped at each step")
      ->type_name("FILE");
  add_seed(*switching, common);
  add_threads(*switching, common);
  add_json(*switching, common);
  add_output(*switching, common, "Where the table goes");
  return switching;
}

void run_switching(SwitchingCommand& command, const Common& common) {
  maps::SwitchingOptions& options = command.options;
  options.draw = maps::draw_of(command.draw);
  options.seed = common.seed;
  options.threads = common.thread_count();
  if (command.batches.empty()) command.batches.emplace_back("1");
  std::vector<std::int64_t> batches;
  for (const std::string& text : command.batches) {
    batches.push_back(static_cast<std::int64_t>(parse_count(text).value_or(0)));
    if (batches.back() < 1 || batches.back() > 1 << 20)
      throw UsageError("--batch: expected a whole number from 1 to {}, found {}", 1 << 20, text);
  }
  TextOutput output(common.output);
  std::optional<TextOutput> histogram;
  std::optional<TableWriter> histogram_table;
  if (!command.histogram.empty()) {
    histogram.emplace(command.histogram);
    histogram_table = table_writer({{"batch"}, {"step"}, {"escaped"}, {"probability", 0}}, common, *histogram);
  }
  TableWriter table = table_writer({{"mu", 0},
                                    {"batch"},
                                    {"orbits"},
                                    {"steps"},
                                    {"escaped"},
                                    {"probability"},
                                    {"low"},
                                    {"high"},
                                    {"mean_first_escape"},
                                    {"across"},
                                    {"across_stderr", 2},
                                    {"balanced_escaped"}},
                                   common, output);
  for (const std::int64_t batch : batches) {
    options.batch = batch;
    const maps::Switching found = maps::switching(options);
    const auto known = [](double value) { return std::isnan(value) ? Cell() : Cell(value); };
    table.row({options.mu, batch, options.orbits, options.steps, found.escaped, found.probability.value,
               found.probability.low, found.probability.high, known(found.mean_first_escape), known(found.across),
               known(found.across_stderr), found.balanced_escaped});
    std::int64_t so_far = 0;
    for (std::int64_t n = 1; histogram_table && n <= options.steps; ++n) {
      const std::int64_t count = found.first_escape[static_cast<std::size_t>(n)];
      so_far += count;
      if (count > 0)
        histogram_table->row({batch, n, count, static_cast<double>(so_far) / static_cast<double>(options.orbits)});
    }
  }
  if (histogram) histogram->close();
  output.close();
}

struct ClassifyCommand {
  std::vector<std::string> files{"-"};
  std::string column = "loss";
  maps::SeriesOptions options;
};

CLI::App* add_classify(CLI::App& app, Common& common, ClassifyCommand& command) {
  CLI::App* classify = app.add_subcommand("classify", "What a training log, or any series, did");
  classify->footer(
      "Reads a column of tab-separated tables, such as the logs of noether train, or plain numbers, one a line.\n"
      "Example: noether bifurcate classify run.tsv\n"
      "         noether bifurcate orbit --mu 1.25 --steps 5000 | noether bifurcate classify --column e");
  classify->add_option("files", command.files, "Tables, or - for stdin")->type_name("FILE...")->capture_default_str();
  classify->add_option("--column", command.column, "The column to look at")->type_name("NAME")->capture_default_str();
  add_real(*classify, "--tolerance", command.options.tolerance,
           "What counts as no change, relative to the largest value; for a cycle to its range", 0, 1, true);
  add_real(*classify, "--limit", command.options.limit, "So many times the first value, it has diverged", 1);
  add_count(*classify, "--longest", command.options.longest, "Longest period that is looked for", 2, 1 << 20);
  add_json(*classify, common);
  add_output(*classify, common, "Where the table goes");
  return classify;
}

/// One column of a table with a header, or the numbers of a file that has none.
std::vector<double> read_column(const std::string& path, const std::string& column) {
  std::ifstream file;
  if (path != "-") file.open(path);
  if (path != "-" && !file) throw Error("{}: {}", path, system_reason(errno));
  std::istream& in = path == "-" ? std::cin : file;
  const std::string name = path == "-" ? "stdin" : path;
  const auto cell = [](const std::string& line, std::size_t index) {
    std::stringstream cells(line);
    std::string text;
    for (std::size_t i = 0; i <= index; ++i)
      if (!std::getline(cells, text, '\t')) return std::string();
    return text;
  };
  std::vector<double> values;
  std::size_t index = 0;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (number == 1 && !parse_real(line)) {
      std::vector<std::string> names;
      for (std::stringstream cells(line); std::getline(cells, line, '\t');) names.push_back(line);
      const auto found = std::find(names.begin(), names.end(), column);
      if (found == names.end())
        throw Error("{}: no column {}{} (found: {})", name, column, did_you_mean(column, names),
                    fmt::join(names, ", "));
      index = static_cast<std::size_t>(found - names.begin());
      continue;
    }
    const std::string text = cell(line, index);
    // A diverged run may say so in its own words.
    const auto value = text == "nan" || text == "-nan" || text == "inf" || text == "-inf" ? nan : parse_real(text);
    if (!value) throw Error("{}: line {}: expected a number, found {}", name, number, text.empty() ? "nothing" : text);
    values.push_back(*value);
  }
  return values;
}

void run_classify(const ClassifyCommand& command, const Common& common) {
  TextOutput output(common.output);
  std::optional<TableWriter> table;
  for (const std::string& path : command.files) {
    const std::vector<double> values = read_column(path, command.column);
    const maps::Series found = [&] {
      try {
        return maps::classify_series(values, command.options);
      } catch (const Error& error) {
        throw Error("{}: {}", path == "-" ? "stdin" : path, error.what());
      }
    }();
    if (!table)
      table = table_writer({{"series"},
                            {"course"},
                            {"period"},
                            {"values"},
                            {"rises"},
                            {"first_rise"},
                            {"first"},
                            {"last"},
                            {"largest"},
                            {"chaos", 3}},
                           common, output);
    const auto some = [](std::int64_t count) { return count > 0 ? Cell(count) : Cell(); };
    table->row({path == "-" ? "stdin" : path, std::string(maps::name_of(found.course)), some(found.period),
                static_cast<std::int64_t>(values.size()), found.rises, some(found.first_rise), found.first, found.last,
                found.largest, std::isnan(found.chaos) ? Cell() : Cell(found.chaos)});
  }
  output.close();
}

struct PromptsCommand {
  regression::PromptOptions options;
  std::string file;
};

CLI::App* add_prompts(CLI::App& app, Common& common, PromptsCommand& command) {
  CLI::App* prompts = app.add_subcommand("prompts", "Prompts for a linear transformer, drawn or from text");
  prompts->footer(
      "Of text each line is a pair, the components of x and then y; the last line of a prompt is the query with its\n"
      "target, and an empty line is between prompts.\n"
      "Example: printf '1 1\\n1 1\\n' | noether bifurcate prompts - > one.h5\n"
      "         noether bifurcate prompts --count 64 --dimension 4 --noise 0.1 > prompts.h5\n"
      "         noether init linear-transformer --dimension 4 | noether train - prompts.h5 --lr 2 --steps 500 > "
      "model.h5");
  prompts->add_option("file", command.file, "Pairs as text, or - for stdin; without it prompts are drawn")
      ->type_name("FILE");
  add_count(*prompts, "--count", command.options.count, "Prompts", 1, 1 << 24);
  add_count(*prompts, "--pairs", command.options.pairs, "Pairs of each", 1, 1 << 20);
  add_count(*prompts, "--dimension", command.options.dimension, "Components of an x", 1, 4096);
  add_real(*prompts, "--noise", command.options.noise, "Standard deviation of the noise of y", 0);
  add_seed(*prompts, common);
  add_output(*prompts, common, "Where the prompts go");
  return prompts;
}

void run_prompts(PromptsCommand& command, const CLI::App& app, const Common& common) {
  for (const char* option : {"--count", "--pairs", "--dimension", "--noise", "--seed"})
    if (!command.file.empty() && app.count(option) > 0)
      throw UsageError("{} has no effect on prompts from text", option);
  command.options.seed = common.seed;
  store::OutputStream output(common.output);
  const regression::Prompts prompts = [&] {
    if (command.file.empty()) return regression::draw_prompts(command.options);
    if (command.file == "-") return regression::parse_prompts(std::cin, "stdin");
    std::ifstream text(command.file);
    if (!text) throw Error("{}: {}", command.file, system_reason(errno));
    return regression::parse_prompts(text, command.file);
  }();
  output.write(to_file(prompts), {to_json(provenance_record(common, command.file.empty()))});
  output.close();
}

struct BasinsCommand {
  maps::BasinOptions options;
  std::string size = "512", x, y, picture, grid;
};

CLI::App* add_basins(CLI::App& app, Common& common, BasinsCommand& command) {
  CLI::App* basins = app.add_subcommand("basins", "What becomes of every start of a grid, and of how much of it");
  basins->footer("A row for each fate: its share of the grid, its area, and how far that may be off.\n"
                 "Example: noether bifurcate basins --mu 0.8 --size 1000 --picture basins.png\n"
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
  basins->add_option("--picture", command.picture, "A PNG file of a pixel a point")->type_name("FILE");
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
  if (!command.picture.empty()) plot::write_png(command.picture, picture_of(found, options));
  TableWriter table = table_writer({{"fate"}, {"points"}, {"fraction"}, {"area"}, {"area_error", 2}}, common, output);
  for (const maps::Area& area : maps::areas(found, options))
    table.row({maps::name_of(area.fate), area.cells, area.fraction, area.area, area.error});
  output.close();
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"The two-factor map of large-step training: orbits, phases, exponents, diagrams and basins.",
               "bifurcate"};
  Common common;
  OrbitCommand orbit;
  LyapunovCommand lyapunov;
  PhasesCommand phases;
  DiagramCommand diagram;
  SwitchingCommand switching;
  ClassifyCommand classify;
  BasinsCommand basins;
  PromptsCommand prompts;
  add_common(app, common,
             "(a, b) -> (a - (ab - mu) b, b - (ab - mu) a): gradient descent on 1/2 (u w s - y)^2, with mu = lr s y.\n"
             "Example: noether bifurcate phases\n"
             "         noether bifurcate basins --mu 0.8 --picture basins.png");
  const CLI::App* orbit_app = add_orbit(app, common, orbit);
  const CLI::App* lyapunov_app = add_lyapunov(app, common, lyapunov);
  const CLI::App* phases_app = add_phases(app, common, phases);
  const CLI::App* diagram_app = add_diagram(app, common, diagram);
  const CLI::App* switching_app = add_switching(app, common, switching);
  const CLI::App* classify_app = add_classify(app, common, classify);
  const CLI::App* basins_app = add_basins(app, common, basins);
  const CLI::App* prompts_app = add_prompts(app, common, prompts);
  return run_tool(app, argc, argv, common, [&] {
    if (app.get_subcommands().empty())
      throw UsageError(
          "expected a subcommand: orbit, lyapunov, phases, diagram, switching, classify, basins or prompts");
    if (orbit_app->parsed()) run_orbit(orbit, *orbit_app, common);
    if (lyapunov_app->parsed()) run_lyapunov(lyapunov, common);
    if (phases_app->parsed()) run_phases(phases, *phases_app, common);
    if (diagram_app->parsed()) run_diagram(diagram, *diagram_app, common);
    if (switching_app->parsed()) run_switching(switching, common);
    if (classify_app->parsed()) run_classify(classify, common);
    if (basins_app->parsed()) run_basins(basins, *basins_app, common);
    if (prompts_app->parsed()) run_prompts(prompts, *prompts_app, common);
  });
}
