// bifurcate switching. Ensembles under random steps: mini-batches.
#include "bifurcate/plot_option.h"

#include "base/number.h"
#include "maps/switching.h"

#include <cmath>

namespace noether {

namespace {

struct SwitchingCommand {
  PlotOption plot;
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
  command.plot.add(*switching, "Draw the probability of having escaped by each step, a curve for each batch");
  add_seed(*switching, common);
  add_threads(*switching, common);
  add_json(*switching, common);
  add_output(*switching, common, "Where the table goes");
  return switching;
}

void run_switching(SwitchingCommand& command, const Common& common) {
  maps::SwitchingOptions& options = command.options;
  command.plot.check(common);
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
                                    {"balanced_escaped"},
                                    {"superstable"}},
                                   common, output);
  std::string script = "set title 'Escape under mini-batches'\nset xlabel 'step'\nset ylabel 'share that has escaped'\n"
                       "set grid\nset yrange [0:1.02]\nset key left top\n",
              data;
  for (const std::int64_t batch : batches) {
    options.batch = batch;
    const maps::Switching found = maps::switching(options);
    const auto known = [](double value) { return std::isnan(value) ? Cell() : Cell(value); };
    table.row({options.mu, batch, options.orbits, options.steps, found.escaped, found.probability.value,
               found.probability.low, found.probability.high, known(found.mean_first_escape), known(found.across),
               known(found.across_stderr), found.balanced_escaped, found.superstable});
    script += fmt::format("{}'-' with steps linewidth 2 title 'batch {}'", data.empty() ? "plot " : ", ", batch);
    data += "0 0\n";
    std::int64_t so_far = 0;
    for (std::int64_t n = 1; (histogram_table || command.plot.given()) && n <= options.steps; ++n) {
      const std::int64_t count = found.first_escape[static_cast<std::size_t>(n)];
      so_far += count;
      const double share = static_cast<double>(so_far) / static_cast<double>(options.orbits);
      if (count > 0) data += fmt::format("{} {}\n", n, share);
      if (count > 0 && histogram_table) histogram_table->row({batch, n, count, share});
    }
    data += fmt::format("{} {}\ne\n", options.steps, found.probability.value);
  }
  if (histogram) histogram->close();
  output.close();
  if (command.plot.given()) plot::draw(command.plot.path, script + "\n" + data);
}

} // namespace

Subcommand switching_subcommand(CLI::App& parent, Common& common) {
  auto command = std::make_shared<SwitchingCommand>();
  CLI::App* app = add_switching(parent, common, *command);
  return {app, [=, &common] { run_switching(*command, common); }};
}

} // namespace noether
