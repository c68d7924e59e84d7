// The log of a run: a row a step, as tab-separated text that grows while the run goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace noether::training {

struct LogRow {
  std::uint64_t step = 0, tokens = 0;
  double loss = 0, smoothed_loss = 0, learning_rate = 0, gradient_norm = 0, seconds = 0, tokens_per_second = 0;
  std::optional<double> valid_loss;
};

class TrainingLog {
public:
  /// Looks at `path` only: throws Error when it cannot be written, or holds something that is not a log.
  explicit TrainingLog(const std::string& path);
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;
  ~TrainingLog();

  /// Begins to write after step `step`: rows up to it stay, later ones are dropped (the run did them, but nothing of it
  /// was saved). Step 0 begins a new log.
  void begin(std::uint64_t step);
  /// Training time of the rows that stayed, in seconds.
  double seconds() const { return seconds_; }
  void row(const LogRow& row);

private:
  void write(std::string line) const;
  std::string path_;
  bool regular_ = true; ///< or a FIFO, a device: nothing is read from it
  double seconds_ = 0;
  int descriptor_ = -1;
};

} // namespace noether::training
