#include "align/subcommands.h"

namespace noether {

std::string heat_map(const Subject& subject, const std::string& title, const std::vector<double>& value) {
  const architecture::Config& c = subject.config();
  // Viridis, by hand: named colour maps are newer than Debian 12's gnuplot.
  std::string script = fmt::format(
      "set title {}\nset xlabel 'head'\nset ylabel 'layer'\nset yrange [{}.5:-0.5]\nset xrange [-0.5:{}.5]\nset xtics "
      "1\n"
      "set ytics 1\nset palette defined (0 '#440154', 1 '#472d7b', 2 '#3b528b', 3 '#2c728e', 4 '#21918c', 5 '#28ae80', "
      "6 '#5ec962', 7 '#addc30', 8 '#fde725')\n",
      plot::quoted(title), c.layers - 1, c.heads - 1);
  script += "plot '-' matrix with image notitle\n";
  for (std::int64_t layer = 0; layer < c.layers; ++layer)
    for (std::int64_t head = 0; head < c.heads; ++head)
      script += fmt::format("{}{}", value[static_cast<std::size_t>(layer * c.heads + head)],
                            head + 1 == c.heads ? "\n" : " ");
  return script + "e\n";
}

void add_enrich_options(CLI::App& app, Common& common, EnrichCommand& command) {
  add_count(app, "--top", command.options.top, "Tokens at each end of a head's list", 1, 1 << 20);
  add_count(app, "--null", command.options.null,
            "Random directions of the same length that are counted beside it; 0: none", 0, 10000);
  command.view.add_direction(app);
  command.view.add_text(app, "for --direction mean-query");
  add_seed(app, common);
  add_threads(app, common);
  add_json(app, common);
  add_output(app, common, "Where the table goes");
}

void check_enrich(const EnrichCommand& command, const CLI::App& app) {
  command.view.check();
  if (!command.view.text.empty() && command.view.direction != "mean-query")
    throw UsageError("--text has no effect without --direction mean-query");
  if (command.options.null == 0 && app.count("--seed") > 0) throw UsageError("--seed has no effect with --null 0");
}

} // namespace noether
