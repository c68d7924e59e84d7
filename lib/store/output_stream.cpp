// Sends files: the metadata from HDF5's memory file, the arrays from where the caller has them. Does not keep what it
// sent.
#include "store/stream.h"

#include "base/error.h"
#include "store/atomic_file.h"
#include "store/layout.h"

#include <zstd.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>

namespace noether::store {
namespace {

constexpr int kPipe = 1 << 20; // what an ordinary user may ask for
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kGift = 2 * kHugePage;

bool huge_pages_allowed() {
  std::string line;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), line);
  return !line.empty() && line.find("[never]") == std::string::npos;
}

/// Copies the bytes to fresh huge pages and gives those to the pipe, which is 1.5 times as fast as write(2), where the
/// kernel does the same page by page. The caller's own pages are never given: whoever splices them on (pv does) would
/// see them change after the write, in silence. Returns how many bytes were taken; fewer than `size` where the
/// descriptor takes no pages.
std::size_t give_pages(int descriptor, const std::byte* data, std::size_t size, std::string_view name) {
  for (std::size_t done = 0; done < size;) {
    const std::size_t piece = std::min(kGift, size - done);
    const Mapping pages(
        ::mmap(nullptr, kGift + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
        kGift + kHugePage);
    if (!pages) return done;
    void* start = pages.data();
    std::size_t room = pages.size();
    std::align(kHugePage, kGift, start, room);
    ::madvise(start, kGift, MADV_HUGEPAGE);
    std::memcpy(start, data + done, piece);
    iovec rest{start, piece};
    while (rest.iov_len > 0) {
      const ssize_t taken = ::vmsplice(descriptor, &rest, 1, 0);
      if (taken < 0 && errno == EINTR) continue;
      if (taken < 0 && errno == EPIPE) throw Error("{}: {}", name, system_reason(EPIPE));
      if (taken < 0) return done + (piece - rest.iov_len);
      rest.iov_base = static_cast<std::byte*>(rest.iov_base) + taken;
      rest.iov_len -= static_cast<std::size_t>(taken);
    }
    done += piece;
  }
  return size;
}

void zstd_check(std::size_t result, std::string_view name) {
  if (ZSTD_isError(result) != 0) throw Error("{}: zstd: {}", name, ZSTD_getErrorName(result));
}

} // namespace

struct OutputStream::State {
  std::string name;
  std::optional<AtomicFile> file; ///< nothing when it is stdout
  int descriptor = -1;
  bool regular = false, pipe = false, used = false, expects_more = false;
  int level = 0;
  std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> zstd{nullptr, ZSTD_freeCCtx};
  std::vector<std::byte> compressed;

  void send_plain(const void* data, std::size_t size) {
    if (pipe && size >= kHugePage) {
      const std::size_t given = give_pages(descriptor, static_cast<const std::byte*>(data), size, name);
      data = static_cast<const std::byte*>(data) + given;
      size -= given;
      pipe = size == 0; // it takes no pages: do not try again
    }
    if (file)
      file->write(data, size);
    else
      write_all(descriptor, data, size, name);
  }

  void send(const void* data, std::size_t size, bool last = false) {
    if (level == 0) return send_plain(data, size);
    ZSTD_inBuffer input{data, size, 0};
    for (std::size_t left = 1; left > 0;) {
      ZSTD_outBuffer output{compressed.data(), compressed.size(), 0};
      left = ZSTD_compressStream2(zstd.get(), &output, &input, last ? ZSTD_e_end : ZSTD_e_continue);
      zstd_check(left, name);
      send_plain(compressed.data(), output.pos);
      if (!last) left = input.size - input.pos;
    }
  }

  /// Sends [begin, end) of the memory file.
  void send_rest(int rest, std::uint64_t begin, std::uint64_t end) {
    std::array<std::byte, 65536> buffer;
    while (begin < end) {
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - begin));
      if (::pread(rest, buffer.data(), piece, static_cast<off_t>(begin)) != static_cast<ssize_t>(piece))
        throw Error("{}: cannot read the memory file back", name);
      send(buffer.data(), piece);
      begin += piece;
    }
  }
};

OutputStream::OutputStream(const std::string& path, int zstd_level) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.name = path == "-" ? "stdout" : path;
  state.level = zstd_level;
  if (path == "-") {
    if (::isatty(STDOUT_FILENO) != 0) throw UsageError("stdout is a terminal; redirect it or name a file with -o");
    state.descriptor = STDOUT_FILENO;
  } else {
    state.file.emplace(path);
    state.descriptor = state.file->descriptor();
    if (::isatty(state.descriptor) != 0) throw UsageError("{} is a terminal; name a file with -o", path);
  }
  struct stat status {};
  if (::fstat(state.descriptor, &status) != 0) throw Error("{}: {}", state.name, system_reason(errno));
  state.regular = S_ISREG(status.st_mode);
  state.pipe = S_ISFIFO(status.st_mode) && huge_pages_allowed();
  if (S_ISFIFO(status.st_mode)) ::fcntl(state.descriptor, F_SETPIPE_SZ, kPipe); // refused: slower, no more
  if (path == "-" && state.regular) {
    const off_t position =
        (::fcntl(STDOUT_FILENO, F_GETFL) & O_APPEND) != 0 ? status.st_size : ::lseek(STDOUT_FILENO, 0, SEEK_CUR);
    if (position > 0)
      throw UsageError("stdout is a file that already holds {} bytes; readers would not see what comes after them",
                       position);
  }
  if (zstd_level == 0) return;
  if (zstd_level < ZSTD_minCLevel() || zstd_level > ZSTD_maxCLevel())
    throw UsageError("zstd level {}, expected 1 to {}", zstd_level, ZSTD_maxCLevel());
  state.zstd.reset(ZSTD_createCCtx());
  if (!state.zstd) throw std::bad_alloc();
  zstd_check(ZSTD_CCtx_setParameter(state.zstd.get(), ZSTD_c_compressionLevel, zstd_level), state.name);
  zstd_check(ZSTD_CCtx_setParameter(state.zstd.get(), ZSTD_c_checksumFlag, 1), state.name);
  state.compressed.resize(ZSTD_CStreamOutSize());
}

OutputStream::OutputStream(OutputStream&&) noexcept = default;
OutputStream& OutputStream::operator=(OutputStream&&) noexcept = default;
OutputStream::~OutputStream() = default;

void OutputStream::write(FileWriter&& file, const std::vector<std::string>& provenance, bool more) {
  State& state = *state_;
  const FileWriter content = std::move(file);
  if (state.regular && (more || state.used))
    throw UsageError("{} is a file on disk: readers would see only the first of several; use a pipe, or one file each",
                     state.name);
  const Layout layout = lay_out(*content.content_, content.digest(), provenance, more);
  if (state.file && !state.zstd) state.file->reserve(layout.length);
  if (state.zstd) zstd_check(ZSTD_CCtx_setPledgedSrcSize(state.zstd.get(), layout.length), state.name);
  std::uint64_t position = 0;
  for (const Piece& piece : layout.pieces) {
    state.send_rest(layout.rest, position, piece.offset);
    state.send(piece.data, piece.size);
    position = piece.offset + piece.size;
  }
  state.send_rest(layout.rest, position, layout.length);
  if (state.zstd) state.send(nullptr, 0, true);
  state.used = true;
  state.expects_more = more;
}

bool OutputStream::reader_gone() const {
  pollfd waiting{state_->descriptor, 0, 0};
  return ::poll(&waiting, 1, 0) > 0 && (waiting.revents & POLLERR) != 0;
}

void OutputStream::close() {
  State& state = *state_;
  if (state.expects_more) throw Error("{}: another file was announced and not written", state.name);
  if (state.file && state.used) return state.file->commit();
  // Some file systems report a full disk only when a descriptor is closed; stdout itself stays open for others.
  const int copy = ::fcntl(state.descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0 && ::close(copy) != 0 && errno != EINTR) throw Error("{}: {}", state.name, system_reason(errno));
}

} // namespace noether::store
