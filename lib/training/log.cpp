#include "training/log.h"

#include "base/error.h"
#include "store/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace noether::training {

StepTable::StepTable(std::string path, std::vector<Column> columns, std::string_view what)
    : path_(std::move(path)), columns_(std::move(columns)) {
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    regular_ = false;
    return;
  }
  const store::AtomicFile probe(path_); // throws when nothing can be written there
  std::ifstream file(path_);
  std::string line;
  if (std::getline(file, line) && line != header())
    throw Error("{}: not {}: its first line is not \"{}, {}, {}, ...\"; it is left as it is", path_, what,
                columns_[0].name, columns_[1].name, columns_[2].name);
}

StepTable::~StepTable() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string StepTable::header() const {
  std::string line;
  for (const Column& column : columns_) line += fmt::format("{}{}", line.empty() ? "" : "\t", column.name);
  return line;
}

std::vector<std::string> StepTable::begin(std::uint64_t step) {
  std::vector<std::string> last;
  if (regular_) {
    std::string kept = header() + "\n", line, last_line;
    std::ifstream file(path_);
    std::getline(file, line);
    while (step > 0 && std::getline(file, line)) {
      std::istringstream fields(line);
      std::uint64_t number = 0;
      // A line without its end was cut by a crash, together with the step that it stands for.
      if (file.eof() || !(fields >> number) || number > step) break;
      kept += line;
      kept += '\n';
      last_line = line;
    }
    std::istringstream fields(last_line);
    for (std::string field; std::getline(fields, field, '\t');) last.push_back(field);
    store::AtomicFile whole(path_);
    whole.write(kept);
    whole.commit();
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | (regular_ ? O_APPEND : 0));
  if (descriptor_ < 0) throw Error("{}: {}", path_, system_reason(errno));
  if (!regular_) write(header());
  return last;
}

void StepTable::row(const std::vector<Cell>& cells) {
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    line += fmt::format("{}{}", i == 0 ? "" : "\t", to_text(cells[i], columns_[i].digits));
  write(line);
}

void StepTable::write(std::string line) const {
  line += '\n';
  store::write_all(descriptor_, line.data(), line.size(), path_);
}

TrainingLog::TrainingLog(const std::string& path)
    : table_(path,
             {{"step"},
              {"tokens"},
              {"loss", 7},
              {"smoothed_loss", 7},
              {"learning_rate"},
              {"gradient_norm"},
              {"seconds"},
              {"tokens_per_second", 4},
              {"valid_loss", 7}},
             "the log of a training run") {}

void TrainingLog::begin(std::uint64_t step) {
  const std::vector<std::string> last = table_.begin(step);
  if (last.size() > 6) seconds_ = std::strtod(last[6].c_str(), nullptr);
}

void TrainingLog::row(const LogRow& row) {
  std::vector<Cell> cells{static_cast<std::int64_t>(row.step), static_cast<std::int64_t>(row.tokens)};
  for (const double value :
       {row.loss, row.smoothed_loss, row.learning_rate, row.gradient_norm, row.seconds, row.tokens_per_second})
    cells.emplace_back(value);
  cells.emplace_back();
  if (row.valid_loss) cells.back() = *row.valid_loss;
  table_.row(cells);
}

} // namespace noether::training
