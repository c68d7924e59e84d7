// Tables that grow while a run goes on, as tab-separated text: the log, a row a step, and what is recorded beside it.
#pragma once

#include "base/table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace noether::training {

/// A table whose first column is the step, in a file that a resumed run goes on in.
class StepTable {
public:
  /// Looks at `path` only: throws Error when it cannot be written, or holds something that is not such a table.
  /// what: "the log of a training run", for that message.
  StepTable(std::string path, std::vector<Column> columns, std::string_view what);
  StepTable(const StepTable&) = delete;
  StepTable& operator=(const StepTable&) = delete;
  ~StepTable();

  /// Begins to write after step `step`: rows up to it stay, later ones are dropped (the run did them, but nothing of it
  /// was saved). Step 0 begins a new table. Returns the fields of the last row that stayed.
  std::vector<std::string> begin(std::uint64_t step);
  /// As many cells as columns.
  void row(const std::vector<Cell>& cells);

private:
  std::string header() const;
  void write(std::string line) const;
  std::string path_;
  std::vector<Column> columns_;
  bool regular_ = true; ///< or a FIFO, a device: nothing is read from it
  int descriptor_ = -1;
};

struct LogRow {
  std::uint64_t step = 0, tokens = 0;
  double loss = 0, smoothed_loss = 0, learning_rate = 0, gradient_norm = 0, seconds = 0, tokens_per_second = 0;
  std::optional<double> valid_loss;
};

class TrainingLog {
public:
  explicit TrainingLog(const std::string& path);
  /// As StepTable's.
  void begin(std::uint64_t step);
  /// Training time of the rows that stayed, in seconds.
  double seconds() const { return seconds_; }
  void row(const LogRow& row);

private:
  StepTable table_;
  double seconds_ = 0;
};

} // namespace noether::training
