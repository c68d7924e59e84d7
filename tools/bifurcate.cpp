// bifurcate: the two-factor map of large-step training: orbits, phases, exponents, diagrams, basins.
#include "bifurcate/subcommands.h"

int main(int argc, char** argv) {
  using namespace noether;
  CLI::App app{"The two-factor map of large-step training: orbits, phases, exponents, diagrams and basins.",
               "bifurcate"};
  Common common;
  add_common(app, common,
             "(a, b) -> (a - (ab - mu) b, b - (ab - mu) a): gradient descent on 1/2 (u w s - y)^2, with mu = lr s y.\n"
             "Example: noether bifurcate phases\n"
             "         noether bifurcate basins --mu 0.8 --picture basins.png");
  const std::vector<Subcommand> subcommands{
      orbit_subcommand(app, common),   lyapunov_subcommand(app, common),  phases_subcommand(app, common),
      diagram_subcommand(app, common), switching_subcommand(app, common), classify_subcommand(app, common),
      basins_subcommand(app, common),  prompts_subcommand(app, common),
  };
  return run_tool(app, argc, argv, common, [&] { run_subcommand(subcommands); });
}
