// A buffer before a descriptor, and zstd's streaming decoder behind it. Large reads go past the buffer straight to
// their place. Compression other than zstd is not undone.
#include "store/byte_input.h"

#include "base/error.h"

#include <zstd.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace noether::store {
namespace {

constexpr std::size_t kBuffer = std::size_t{128} << 10; // a zstd block and its header
constexpr int kPipe = 1 << 20;                          // what an ordinary user may ask for

/// RFC 8878: a frame, or one that is to be skipped.
bool begins_frame(std::string_view bytes) {
  if (bytes.size() < 4) return false;
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), 4);
  return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

} // namespace

std::string input_name(const std::string& path) { return path == "-" ? "stdin" : path; }

Descriptor open_input(const std::string& path) {
  // A copy, so that stdin stays open for whoever comes later.
  Descriptor descriptor(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                    : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor < 0 && errno == ENOENT) throw Error("{}: no such file", path);
  if (descriptor < 0 && errno == EBADF) throw Error("{}: closed", input_name(path));
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
    throw Error("{}: {}", input_name(path), system_reason(errno));
  if (S_ISDIR(status.st_mode)) throw Error("{}: is a folder", input_name(path));
  // Fewer switches between the two programs; 64 KiB are enough to work, so a refusal is no error.
  if (S_ISFIFO(status.st_mode)) ::fcntl(descriptor, F_SETPIPE_SZ, kPipe);
  return descriptor;
}

ByteInput::ByteInput(Descriptor descriptor, std::string name)
    : descriptor_(std::move(descriptor)), name_(std::move(name)), raw_(kBuffer), zstd_(nullptr, ZSTD_freeDCtx) {}
ByteInput::ByteInput(ByteInput&&) noexcept = default;
ByteInput::~ByteInput() = default;

/// Gets at least `size` bytes into the buffer; false when the input ends before.
bool ByteInput::fill(std::size_t size) {
  if (buffered().size() >= size) return true;
  std::copy(raw_.begin() + static_cast<std::ptrdiff_t>(begin_), raw_.begin() + static_cast<std::ptrdiff_t>(end_),
            raw_.begin());
  end_ -= begin_;
  begin_ = 0;
  if (raw_.size() < size) raw_.resize(size);
  while (end_ < size && !ended_) end_ += read_raw(raw_.data() + end_, raw_.size() - end_);
  return end_ >= size;
}

/// One read(2): at least a byte, or 0 at the end.
std::size_t ByteInput::read_raw(void* out, std::size_t size) {
  ssize_t got = 0;
  do got = ::read(descriptor_, out, size);
  while (got < 0 && errno == EINTR);
  if (got < 0) throw Error("{}: {}", name_, system_reason(errno));
  ended_ = got == 0;
  return static_cast<std::size_t>(got);
}

bool ByteInput::sniff() {
  for (;;) {
    if (compressed_ && !peek(1).empty()) return true;
    fill(4);
    compressed_ = begins_frame(buffered());
    if (!compressed_) return !buffered().empty();
  }
}

std::string_view ByteInput::peek(std::size_t size) {
  if (!compressed_) {
    fill(size);
    return buffered().substr(0, size);
  }
  const std::size_t had = decoded_.size();
  if (had < size) {
    decoded_.resize(size);
    decoded_.resize(had + decompress(decoded_.data() + had, size - had));
  }
  return std::string_view(decoded_).substr(0, size);
}

std::size_t ByteInput::read(void* out, std::size_t size) {
  char* bytes = static_cast<char*>(out);
  std::size_t got = std::min(size, compressed_ ? decoded_.size() : buffered().size());
  if (got > 0) std::memcpy(bytes, compressed_ ? decoded_.data() : buffered().data(), got);
  if (compressed_) {
    decoded_.erase(0, got);
    return got + decompress(bytes + got, size - got);
  }
  begin_ += got;
  while (got < size && !ended_) got += read_raw(bytes + got, size - got);
  return got;
}

/// Content of frames, up to `size` bytes; fewer only where something else than another frame follows.
std::size_t ByteInput::decompress(void* out, std::size_t size) {
  if (!zstd_) zstd_.reset(ZSTD_createDCtx());
  if (!zstd_) throw std::bad_alloc();
  ZSTD_outBuffer output{out, size, 0};
  while (output.pos < output.size) {
    if (!in_frame_) {
      fill(4);
      if (!begins_frame(buffered())) break;
      in_frame_ = true;
    }
    // What the decoder holds back comes out before more is waited for.
    const std::size_t before = output.pos;
    ZSTD_inBuffer input{raw_.data() + begin_, end_ - begin_, 0};
    const std::size_t state = ZSTD_decompressStream(zstd_.get(), &output, &input);
    if (ZSTD_isError(state) != 0) throw Error("{}: damaged zstd data: {}", name_, ZSTD_getErrorName(state));
    begin_ += input.pos;
    content_ += output.pos - before;
    in_frame_ = state != 0;
    if (in_frame_ && output.pos == before && input.pos == 0 && !fill(1))
      throw Error("{}: cut short inside a zstd frame, after {} bytes of content", name_, content_);
  }
  return output.pos;
}

} // namespace noether::store
