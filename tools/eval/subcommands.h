// The subcommands of eval, and what they share.
#pragma once

#include "common.h"

#include "store/reader.h"
#include "store/stream.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace noether {

Subcommand loss_subcommand(CLI::App& parent, Common& common);
Subcommand generate_subcommand(CLI::App& parent, Common& common);
Subcommand sharpness_subcommand(CLI::App& parent, Common& common);
Subcommand puzzles_subcommand(CLI::App& parent, Common& common);
Subcommand choices_subcommand(CLI::App& parent, Common& common);
Subcommand last_word_subcommand(CLI::App& parent, Common& common);

/// Digests as people compare them; whole ones where programs do.
std::string shown(const std::string& digest, const Common& common);

template <class Value> Cell cell(const std::optional<Value>& value) { return value ? Cell(*value) : Cell(); }

/// A file or a stream of checkpoints; the first of a file is opened before any work.
struct Source {
  store::InputStream stream;
  std::optional<store::FileReader> first;
};

/// A subcommand's positional arguments: checkpoints, - for those of stdin, and last the data, which the usage line
/// calls so. CLI11 cannot tell them apart.
void add_inputs(CLI::App& app, std::vector<std::string>& inputs, const std::string& data,
                const std::string& description);

/// Opens the checkpoints that have names and, last of the inputs, the data, of whatever kind. Nothing is read from
/// stdin: what writes there may take hours, and faults of named files come before.
store::FileReader open_inputs(std::vector<std::string> inputs, std::vector<Source>& sources);

void for_each_checkpoint(std::vector<Source>& sources, const std::function<void(store::FileReader)>& use);

} // namespace noether
