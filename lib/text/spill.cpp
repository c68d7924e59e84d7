// An unlinked temporary file behind a buffer; read back through a mapping, which the kernel may drop from memory again.
#include "text/spill.h"

#include "base/error.h"
#include "store/atomic_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace noether::text {
namespace {

std::string folder() {
  const char* named = std::getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe): nobody changes the environment
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

store::Descriptor open_unnamed() {
  store::Descriptor file(::open(folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file >= 0) return file;
  std::string name = folder() + "/noether-XXXXXX"; // some file systems have no O_TMPFILE
  file = store::Descriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (file < 0) throw Error("TMPDIR ({}): {}", folder(), system_reason(errno));
  ::unlink(name.c_str());
  return file;
}

} // namespace

void Spill::append(const void* data, std::size_t size) {
  const char* const bytes = static_cast<const char*>(data);
  memory_.insert(memory_.end(), bytes, bytes + size);
  if (memory_.size() >= limit_) flush();
}

void Spill::flush() {
  if (file_ < 0) file_ = open_unnamed();
  store::write_all(file_, memory_.data(), memory_.size(), "TMPDIR (" + folder() + ")");
  written_ += memory_.size();
  memory_.clear();
}

const void* Spill::data() {
  if (!spilled()) return memory_.data();
  if (!memory_.empty()) flush();
  if (!mapping_) {
    void* const mapped = ::mmap(nullptr, written_, PROT_READ, MAP_SHARED, file_, 0);
    if (mapped == MAP_FAILED) throw Error("TMPDIR ({}): {}", folder(), system_reason(errno));
    mapping_ = store::Mapping(mapped, written_);
  }
  return mapping_.data();
}

} // namespace noether::text
