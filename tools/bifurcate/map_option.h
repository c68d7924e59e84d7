// --map: any polynomial map of one variable in place of the two-factor map.
#pragma once

#include "bifurcate/subcommands.h"
#include "maps/polynomial.h"

namespace noether {

struct MapOption {
  std::string text;
  bool given() const { return !text.empty(); }

  void add(CLI::App& app) {
    app.add_option("--map", text,
                   "Another map of x than the cubic: sums, products, powers, numbers, x and mu: 'mu x (1 - x)'")
        ->type_name("POLYNOMIAL");
  }
  maps::Family family() const { return given() ? maps::parse_family("--map", text) : maps::balanced_line(); }
};

/// The values of --mu. A map that has no mu in it takes none: one value then stands for it, and prints as nothing.
inline std::vector<double> parse_mu(const std::string& text, const maps::Family& family, bool given) {
  if (family.has_mu()) {
    if (!given) throw UsageError("--mu: expected X or FIRST:LAST:COUNT, for the map has a mu in it");
    return parse_values("--mu", text);
  }
  if (given) throw UsageError("--mu has no effect on a map without mu in it");
  return {0};
}
inline Cell mu_cell(const maps::Family& family, double mu) { return family.has_mu() ? Cell(mu) : Cell(); }

} // namespace noether
