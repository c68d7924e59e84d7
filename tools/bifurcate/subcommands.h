// The subcommands of bifurcate, a file each, and how they write ranges.
#pragma once

#include "common.h"
#include "maps/basins.h"

#include <string>
#include <vector>

namespace noether {

Subcommand orbit_subcommand(CLI::App& parent, Common& common);
Subcommand lyapunov_subcommand(CLI::App& parent, Common& common);
Subcommand phases_subcommand(CLI::App& parent, Common& common);
Subcommand diagram_subcommand(CLI::App& parent, Common& common);
Subcommand switching_subcommand(CLI::App& parent, Common& common);
Subcommand classify_subcommand(CLI::App& parent, Common& common);
Subcommand basins_subcommand(CLI::App& parent, Common& common);
Subcommand prompts_subcommand(CLI::App& parent, Common& common);

/// "0.8", or "0.1:2:20": so many values from the first to the last, both included.
std::vector<double> parse_values(const std::string& option, const std::string& text);

/// "-3:3": from the lower edge to the upper.
void parse_interval(const std::string& option, const std::string& text, maps::Axis& axis);

} // namespace noether
