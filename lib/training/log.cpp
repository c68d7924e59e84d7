#include "training/log.h"

#include "base/error.h"
#include "base/table.h"
#include "store/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace noether::training {
namespace {

struct Heading {
  std::string_view name;
  int digits; ///< significant ones
};
constexpr Heading kColumns[] = {{"step", 0},          {"tokens", 0},        {"loss", 7},    {"smoothed_loss", 7},
                                {"learning_rate", 6}, {"gradient_norm", 6}, {"seconds", 6}, {"tokens_per_second", 4},
                                {"valid_loss", 7}};

std::string header() {
  std::string line;
  for (const Heading& column : kColumns) line += fmt::format("{}{}", line.empty() ? "" : "\t", column.name);
  return line;
}

} // namespace

TrainingLog::TrainingLog(const std::string& path) : path_(path) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    regular_ = false;
    return;
  }
  const store::AtomicFile probe(path); // throws when nothing can be written there
  std::ifstream file(path);
  std::string line;
  if (std::getline(file, line) && line != header())
    throw Error(
        "{}: not the log of a training run: its first line is not \"step, tokens, loss, ...\"; it is left as it is",
        path);
}

TrainingLog::~TrainingLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void TrainingLog::begin(std::uint64_t step) {
  if (regular_) {
    std::string kept = header(), line;
    kept += '\n';
    std::ifstream file(path_);
    std::getline(file, line);
    while (step > 0 && std::getline(file, line)) {
      std::istringstream fields(line);
      std::uint64_t number = 0;
      std::string field, seconds;
      // A line without its end was cut by a crash, together with the step that it stands for.
      if (file.eof() || !(fields >> number) || number > step) break;
      fields.seekg(0);
      for (int i = 0; i < 7; ++i) std::getline(fields, i == 6 ? seconds : field, '\t');
      seconds_ = std::strtod(seconds.c_str(), nullptr);
      kept += line;
      kept += '\n';
    }
    store::AtomicFile whole(path_);
    whole.write(kept);
    whole.commit();
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | (regular_ ? O_APPEND : 0));
  if (descriptor_ < 0) throw Error("{}: {}", path_, system_reason(errno));
  if (!regular_) write(header());
}

void TrainingLog::row(const LogRow& row) {
  const Cell cells[] = {static_cast<std::int64_t>(row.step),
                        static_cast<std::int64_t>(row.tokens),
                        row.loss,
                        row.smoothed_loss,
                        row.learning_rate,
                        row.gradient_norm,
                        row.seconds,
                        row.tokens_per_second,
                        row.valid_loss ? Cell(*row.valid_loss) : Cell()};
  std::string line;
  for (std::size_t i = 0; i < std::size(kColumns); ++i)
    line += fmt::format("{}{}", i == 0 ? "" : "\t", to_text(cells[i], kColumns[i].digits));
  write(line);
}

void TrainingLog::write(std::string line) const {
  line += '\n';
  store::write_all(descriptor_, line.data(), line.size(), path_);
}

} // namespace noether::training
