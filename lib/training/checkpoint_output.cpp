#include "training/checkpoint_output.h"

#include "base/error.h"

#include <sys/stat.h>
#include <unistd.h>

namespace noether::training {

CheckpointOutput::CheckpointOutput(const std::string& path, int zstd_level)
    : path_(path), name_(path == "-" ? "stdout" : path), zstd_level_(zstd_level) {
  struct stat status {};
  const bool exists = path != "-" && ::stat(path.c_str(), &status) == 0;
  store::OutputStream stream(path, zstd_level);
  if (path == "-" || (exists && !S_ISREG(status.st_mode))) {
    stream_.emplace(std::move(stream));
    return;
  }
  if (!exists || status.st_size == 0) return;
  try {
    found_ = store::InputStream(path).next();
    found_->expect(store::kCheckpointFile);
  } catch (const Error& error) {
    throw Error("{}; only a checkpoint is replaced by training: remove it, or name another file with -o", error.what());
  }
}

bool CheckpointOutput::takes_several() const {
  struct stat status {};
  return !is_file() && !(path_ == "-" && ::fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode));
}

void CheckpointOutput::write(const architecture::Checkpoint& checkpoint, const std::vector<std::string>& provenance,
                             bool with_optimizer, bool more) {
  write(architecture::to_file(checkpoint, with_optimizer), provenance, more);
}

void CheckpointOutput::write(store::FileWriter&& checkpoint, const std::vector<std::string>& provenance, bool more) {
  if (stream_) return stream_->write(std::move(checkpoint), provenance, more);
  store::OutputStream file(path_, zstd_level_);
  file.write(std::move(checkpoint), provenance);
  file.close();
}

void CheckpointOutput::close() {
  if (stream_) stream_->close();
}

} // namespace noether::training
