// A checkpoint: everything that a run is, in one file (noether-format(5)).
#pragma once

#include "architecture/arena.h"
#include "architecture/config.h"
#include "store/stream.h"
#include "text/tokenizer.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace noether::architecture {

struct Checkpoint {
  Config config;
  std::vector<Parameter> layout; ///< parameters(config)
  Arena parameters;
  std::optional<text::Tokenizer> tokenizer;

  /// Training so far; all empty in a fresh checkpoint.
  struct Training {
    /// What `train` needs to go on, as it wrote it: optimizer and schedule, step, tokens seen, seed, data. Its own
    /// business.
    nlohmann::ordered_json state;
    std::map<std::string, Arena> optimizer; ///< "momentum" -> as long as parameters
    /// Which parameters, in the order of the layout, have that state: where several optimizers move a part each. A
    /// state that is not named here is that of all.
    std::map<std::string, std::vector<bool>> holders;
    /// State that is [n + 1, n] for a side of a matrix: "left/layers/0/mlp/W_up", n its rows; "right/...", n its
    /// columns.
    std::map<std::string, Arena> sides;
    std::map<std::string, std::vector<double>> history; ///< columns of equal length: "step", "loss", ...
    /// What recorded quantities are compared with: "balance_QK" as it was when the run began.
    std::map<std::string, std::vector<double>> references;
  } training;

  std::vector<std::string> provenance; ///< JSON records, oldest first
  std::string digest;                  ///< of the file that it was read from; "" when fresh
  std::string name;                    ///< for messages
};

/// A checkpoint with its arena allocated and its parameters filled from (seed, parameter, index): the same on any
/// number of threads.
Checkpoint initialise(const Config& config, std::uint64_t seed, int threads);

/// Reads one; the reader may be closed afterwards. with_optimizer false leaves the optimizer's state in the file.
/// Every parameter is found by name and its shape compared; a missing or an unknown one is an error.
Checkpoint read_checkpoint(const store::FileReader& file, bool with_optimizer);

/// The file, borrowing the arenas until it is sent.
store::FileWriter to_file(const Checkpoint& checkpoint, bool with_optimizer);

} // namespace noether::architecture
