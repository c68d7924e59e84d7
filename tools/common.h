// What every program shares: options of the same name and meaning, numbers as people write them, where output goes, and
// the one place where a program ends.
#pragma once

#include "base/error.h"
#include "base/reporter.h"
#include "base/table.h"
#include "store/atomic_file.h"
#include "store/provenance.h"
#include "store/stream.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace noether {

/// Values of the shared options. A program has those that it adds; -q, -v, --progress, --version and -h are
/// everybody's.
struct Common {
  std::string output = "-";
  int threads = 0; ///< 0: all that may be used
  bool quiet = false, verbose = false, json = false;
  std::string progress = "auto";
  std::uint64_t seed = 0;
  std::string seed_text = "0";        ///< as given: `random` draws one
  int zstd_level = 0;                 ///< 0: plain
  std::vector<std::string> arguments; ///< the command line after the program's name
  std::string program;                ///< "train"

  Verbosity verbosity() const;
  ProgressMode progress_mode() const;
  int thread_count() const; ///< 1 or more
  TableFormat table_format() const;
};

/// -q, -v, --progress, --version, -h; and the program's example under its help.
void add_common(CLI::App& app, Common& common, const std::string& example);
void add_output(CLI::App& app, Common& common, const std::string& what); ///< -o: "Where the checkpoint goes"
void add_threads(CLI::App& app, Common& common);                         ///< -j
void add_seed(CLI::App& app, Common& common);                            ///< --seed
void add_json(CLI::App& app, Common& common);                            ///< --json
void add_zstd(CLI::App& app, Common& common);                            ///< -z[LEVEL]

/// A whole number in [least, most]: 4096, 1e3, 4k, 2M.
CLI::Option* add_count(CLI::App& app, const std::string& names, std::int64_t& value, const std::string& description,
                       std::int64_t least = 1, std::int64_t most = std::numeric_limits<std::int64_t>::max());
/// A finite number in [least, most]; above `least` where `open`.
CLI::Option* add_real(CLI::App& app, const std::string& names, double& value, const std::string& description,
                      double least = -std::numeric_limits<double>::max(),
                      double most = std::numeric_limits<double>::max(), bool open = false);
/// One of a few words, with a suggestion for a slip.
CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        const std::vector<std::string>& choices, const std::string& description);

/// A subcommand, and the work that it stands for: `run` holds its options.
struct Subcommand {
  const CLI::App* app;
  std::function<void()> run;
};

/// Runs the one that was given; a UsageError names them all where none was.
void run_subcommand(const std::vector<Subcommand>& subcommands);

/// Parses, works, and turns what is thrown into one line on stderr and an exit status: the return value of main().
int run_tool(CLI::App& app, int argc, char** argv, Common& common, const std::function<void()>& work);

/// A record of this run for the files that it writes.
store::ProvenanceRecord provenance_record(const Common& common, bool seeded,
                                          std::vector<store::ProvenanceRecord::Input> inputs = {});

/// Where share/noether/NAME lies beside this program, as installed and in the build tree.
std::string shared_file(const std::string& name);

/// Text to stdout as it comes, or to a file that appears whole at close(); or a table that is to be an HDF5 file.
class TextOutput {
public:
  explicit TextOutput(const std::string& path);
  const std::string& path() const { return path_; }
  void write(std::string_view text);
  /// From here on rows are collected, and close() writes them as a file of kind table.
  void collect(std::vector<Column> columns, std::vector<std::string> provenance);
  void row(const std::vector<Cell>& cells) { rows_.push_back(cells); }
  void close();

private:
  std::string path_;
  std::optional<store::AtomicFile> file_;
  std::vector<Column> columns_; ///< none: text
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::string> provenance_;
};

/// A table to `output`, in the format that its name and --json ask for: one that ends in .h5 is an HDF5 file of kind
/// table.
TableWriter table_writer(std::vector<Column> columns, const Common& common, TextOutput& output);

} // namespace noether
