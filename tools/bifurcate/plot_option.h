// --plot: one picture, of a kind that its name's ending says.
#pragma once

#include "bifurcate/subcommands.h"
#include "plot/gnuplot.h"

#include <cmath>

namespace noether {

struct PlotOption {
  std::string path, renamed;
  bool given() const { return !path.empty(); }

  void add(CLI::App& app, const std::string& what) {
    app.add_option("--plot", path, what + ": a file .png, .svg or .pdf, or - for one of characters on stdout")
        ->type_name("FILE");
  }
  /// --picture, which was the name of PNG pictures, for some time.
  void add_renamed(CLI::App& app) { app.add_option("--picture", renamed)->group(""); }

  /// Before any work.
  void check(const Common& common) {
    if (!renamed.empty()) {
      Reporter("bifurcate", common.verbosity(), common.progress_mode()).message("--picture is called --plot now");
      if (given()) throw UsageError("--picture is called --plot now: give one of them");
      path = renamed;
    }
    if (given()) plot::check_picture(path);
  }
  /// Whether a picture of pixels is written as it is, without axes.
  bool pixels() const { return path.ends_with(".png"); }
};

/// A number for gnuplot, which breaks a curve where there is none.
inline std::string plotted(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "NaN"; }

/// Of rough pictures on a terminal.
inline constexpr std::int64_t kSketchWidth = 96, kSketchHeight = 28;

} // namespace noether
