// A run from its inputs to its last checkpoint: what `noether train` does.
#pragma once

#include "base/reporter.h"
#include "maps/two_factor.h"
#include "regression/linear_transformer.h"
#include "store/provenance.h"
#include "training/settings.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace noether::training {

struct Request {
  std::string checkpoint;          ///< a path, or "-" for stdin
  std::vector<std::string> tokens; ///< likewise; one "-" in all; of a linear transformer one file of prompts
  Json given = Json::object();     ///< settings that were given
  std::optional<std::uint64_t> steps;
  bool new_run = false; ///< take the parameters alone

  std::string valid; ///< a tokens file, or ""
  std::uint64_t valid_every = 0;
  std::int64_t valid_tokens = 65536;

  std::string output = "-";
  int zstd_level = 0;
  std::uint64_t save_every = 0, emit_every = 0;
  bool optimizer_state = true;
  std::string log;          ///< "" for none
  unsigned record_what = 0; ///< training/record.h; 0 for nothing
  std::uint64_t record_every = 10;
  std::string record_log;

  int threads = 1;
  store::ProvenanceRecord record; ///< of this run; its inputs are filled in here
};

/// Trains to the end. A file named by `output` that this very run has saved to before is gone on from.
/// Throws InterruptedError after a signal, DivergedError when it cannot go on; the message says what was saved.
void train(Request request, Reporter& reporter);

/// What a run would take.
struct Plan {
  std::int64_t parameters = 0;
  std::uint64_t steps = 0, tokens = 0; ///< still to do
  std::uint64_t windows = 0;           ///< different ones in the data
  double passes = 0;                   ///< over the data, in tokens
  std::int64_t arena_bytes = 0;        ///< parameters, gradients, optimizer state
  std::int64_t state_bytes = 0;        ///< the optimizer state's part of it
  std::int64_t peak_bytes = 0;         ///< of the process, measured
  double flops = 0;                    ///< of all steps
  double seconds_per_step = 0;         ///< measured: the median of three, after one to warm up

  /// Of a linear transformer, whose steps take nothing worth saying, this instead: where it is on the two-factor map.
  struct Descent {
    std::int64_t prompts = 0, pairs = 0;
    double learning_rate = 0, mu = 0;
    maps::Point at;
    regression::Regression::Moments moments;
  };
  std::optional<Descent> descent{};
};
/// Takes four steps in memory and writes nothing.
Plan plan(Request request, Reporter& reporter);

} // namespace noether::training
