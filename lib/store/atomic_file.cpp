// Replacing a file whole: written without a name, or under a temporary one where the file system needs a name; sync,
// rename, sync of the folder. Extended attributes, access control lists and the owner of the old file are not carried
// over: a rename makes a new file.
#include "store/atomic_file.h"

#include "base/error.h"
#include "store/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

namespace noether::store {
namespace {

/// So much is given to the disk at once: with 8 MiB a synced file of 500 MB took three quarters of the time.
constexpr std::size_t kPiece = std::size_t{8} << 20;

/// 0, or the errno of the write that failed.
int write_or_errno(int descriptor, const void* data, std::size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    // The kernel takes 2 GiB less a page at once; smaller pieces change nothing.
    const ssize_t written = ::write(descriptor, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return 0;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// How the kernel names an open file that has no name.
std::string path_of(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

/// A file without a name in the folder, which ends with its process; -1 where there is no such thing.
int open_unnamed(const std::string& folder, mode_t mode) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (descriptor < 0 || ::access(path_of(descriptor).c_str(), F_OK) == 0) return descriptor;
  ::close(descriptor); // without /proc it could never get a name
  return -1;
}

/// The path with symbolic links at its end followed, also when what they name does not exist yet.
std::string follow_links(std::string path, const std::string& name) {
  for (int links = 0; links < 40; ++links) {
    std::string target(4096, '\0');
    const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
    if (length < 0) return path; // not a link, or nothing there
    target.resize(static_cast<std::size_t>(length));
    path = target.starts_with('/') ? target : folder_of(path) + "/" + target;
  }
  throw Error("{}: {}", name, system_reason(ELOOP));
}

} // namespace

void write_all(int descriptor, const void* data, std::size_t size, std::string_view name) {
  if (const int number = write_or_errno(descriptor, data, size); number != 0)
    throw Error("{}: {}", name, system_reason(number));
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  struct stat status {};
  existed_ = ::stat(path.c_str(), &status) == 0;
  if (!existed_ && errno != ENOENT) throw Error("{}: {}", path, system_reason(errno));
  if (existed_ && S_ISDIR(status.st_mode)) throw Error("{}: is a folder", path);
  if (existed_ && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw Error("{}: {}", path, system_reason(errno));
    return;
  }
  // A rename needs only the folder's permission, but a file that was made read-only is meant to stay.
  if (existed_ && ::access(path.c_str(), W_OK) != 0) throw Error("{}: {}", path, system_reason(errno));
  target_ = follow_links(path, path);
  const mode_t mode = existed_ ? 0600 : 0666;
  descriptor_ = open_unnamed(folder_of(target_), mode);
  if (descriptor_ < 0)
    name_temporary([&](const char* name) {
      descriptor_ = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
      return descriptor_ >= 0;
    });
  if (descriptor_ < 0) {
    const int number = errno;
    temporary_.clear();
    if (number == ENOENT || number == ENOTDIR) throw Error("{}: no such folder", path);
    throw Error("{}: {}", path, system_reason(number));
  }
  if (existed_ && ::fchmod(descriptor_, status.st_mode & 07777) != 0) {
    const int number = errno;
    discard();
    throw Error("{}: {}", path, system_reason(number));
  }
}

template <class Make> void AtomicFile::name_temporary(const Make& make) {
  const std::string base = target_.substr(target_.rfind('/') + 1).substr(0, 200);
  static std::atomic<unsigned> counter{0};
  do temporary_ = fmt::format("{}/.{}.{}-{}.tmp", folder_of(target_), base, ::getpid(), counter++);
  while (!make(temporary_.c_str()) && errno == EEXIST); // left behind by a process of the same number
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), target_(std::move(other.target_)), temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)), existed_(other.existed_), unsent_(other.unsent_) {
  other.temporary_.clear();
}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  path_.swap(other.path_);
  target_.swap(other.target_);
  temporary_.swap(other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(existed_, other.existed_);
  std::swap(unsent_, other.unsent_);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  descriptor_ = -1;
  temporary_.clear();
}

void AtomicFile::fail(int number) const {
  const bool kept = existed_ && regular();
  throw Error("{}: {}{}", path_, system_reason(number), kept ? fmt::format(" (the old {} is unchanged)", path_) : "");
}

void AtomicFile::reserve(std::uint64_t size) {
  // Where the file system cannot reserve, writing will tell.
  if (regular() && ::fallocate(descriptor_, 0, 0, static_cast<off_t>(size)) != 0 &&
      (errno == ENOSPC || errno == EDQUOT))
    fail(errno);
}

void AtomicFile::write(const void* data, std::size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const std::size_t piece = std::min(size, kPiece);
    if (const int number = write_or_errno(descriptor_, bytes, piece); number != 0) fail(number);
    bytes += piece;
    size -= piece;
    unsent_ += piece;
    if (!regular() || unsent_ < kPiece) continue;
    // The disk begins while more is copied; what goes wrong here, commit() hears of.
    ::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE);
    unsent_ = 0;
  }
}

void AtomicFile::commit() {
  if (regular()) {
    if (::fsync(descriptor_) != 0 && errno != EINVAL) fail(errno);
    if (temporary_.empty()) {
      // A link replaces nothing, so even here there is a temporary name, for a moment.
      bool linked = false;
      name_temporary([&](const char* name) {
        linked = ::linkat(AT_FDCWD, path_of(descriptor_).c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
        return linked;
      });
      if (!linked) {
        const int number = errno;
        temporary_.clear();
        fail(number);
      }
    }
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
    temporary_.clear();
    // Some network file systems cannot sync a folder; the file itself is safe by then.
    const Descriptor folder(::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder >= 0) ::fsync(folder);
  }
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    throw Error("{}: {}", path_, system_reason(errno));
}

} // namespace noether::store
