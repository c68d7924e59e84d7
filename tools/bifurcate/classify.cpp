// bifurcate classify. What a training log, or any series, did.
#include "bifurcate/subcommands.h"

#include "base/number.h"
#include "maps/series.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <sstream>

namespace noether {

namespace {

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

} // namespace

Subcommand classify_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<ClassifyCommand>();
  CLI::App* app = add_classify(parent, common, *command);
  return {app, [=, &common] { run_classify(*command, common); }};
}

} // namespace noether
