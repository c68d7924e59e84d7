// Where a run's checkpoints go: to a file that each save replaces, or one after another down a pipe.
#pragma once

#include "architecture/checkpoint.h"
#include "store/stream.h"

#include <optional>
#include <string>
#include <vector>

namespace noether::training {

class CheckpointOutput {
public:
  /// Throws UsageError for a terminal, Error for what cannot be written, and for a file that is there and is not a
  /// checkpoint: training never replaces those.
  CheckpointOutput(const std::string& path, int zstd_level);

  /// A file on disk that is named by its path: it can be saved to many times.
  bool is_file() const { return !stream_; }
  /// Can several follow each other? Not in a regular file that stdout was redirected to.
  bool takes_several() const;
  const std::string& name() const { return name_; }
  /// What lay in the file when the run began.
  std::optional<store::FileReader>& found() { return found_; }

  /// more: others follow (only down a pipe).
  void write(const architecture::Checkpoint& checkpoint, const std::vector<std::string>& provenance,
             bool with_optimizer, bool more = false);
  void write(store::FileWriter&& checkpoint, const std::vector<std::string>& provenance, bool more = false);
  bool reader_gone() const { return stream_ && stream_->reader_gone(); }
  /// After the last.
  void close();

private:
  std::string path_, name_;
  int zstd_level_;
  std::optional<store::OutputStream> stream_;
  std::optional<store::FileReader> found_;
};

} // namespace noether::training
