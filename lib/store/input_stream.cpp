// Takes files apart that come end to end: mapped where they lie on disk, received into memory from anything else.
#include "store/stream.h"

#include "base/error.h"
#include "store/byte_input.h"
#include "store/image.h"
#include "store/rehearsal.h"
#include "store/superblock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>

namespace noether::store {
namespace {

/// Bytes of memory that may still be used, by the kernel's estimate; no limit where it gives none.
std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t kibibytes = 0;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes << 10;
    file.ignore(64, '\n');
  }
  return UINT64_MAX;
}

[[noreturn]] void cut_short(const std::string& name, std::uint64_t expected, std::uint64_t got) {
  throw Error("{}: cut short: expected {} bytes, got {}", name, expected, got);
}

/// Into memory that is only promised and then filled: a length that a header claims costs nothing until its bytes
/// arrive.
Mapping receive_in_memory(ByteInput& input, const std::string& name, std::uint64_t length) {
  Mapping memory(::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                 length);
  if (!memory) throw Error("{}: declares {} bytes: {}", name, length, system_reason(errno));
  ::madvise(memory.data(), length, MADV_HUGEPAGE); // faults of 2 MiB instead of 4 KiB; refused: slower, no more
  const std::size_t got = input.read(memory.data(), length);
  if (got < length) cut_short(name, length, got);
  return memory;
}

/// Into an unlinked file in TMPDIR that grows as bytes arrive.
Mapping receive_on_disk(ByteInput& input, const std::string& name, std::uint64_t length) {
  const char* folder = std::getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe): nothing here sets it
  std::string path = fmt::format("{}/noether-XXXXXX", folder == nullptr || *folder == '\0' ? "/tmp" : folder);
  const Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (file < 0)
    throw Error("{}: declares {} bytes, too many for memory, and {}: {}", name, length, path, system_reason(errno));
  ::unlink(path.c_str());
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (std::uint64_t got = 0; got < length;) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), length - got));
    const std::size_t now = input.read(buffer.data(), piece);
    for (std::size_t done = 0; done < now;) {
      const ssize_t written = ::write(file, buffer.data() + done, now - done);
      if (written < 0 && errno != EINTR) throw Error("{}: no room in {}: {}", name, path, system_reason(errno));
      if (written > 0) done += static_cast<std::size_t>(written);
    }
    got += now;
    if (now < piece) cut_short(name, length, got);
  }
  Mapping mapping(::mmap(nullptr, length, PROT_READ, MAP_SHARED, file, 0), length);
  if (!mapping) throw Error("{}: {} bytes: {}", name, length, system_reason(errno));
  return mapping;
}

[[noreturn]] void not_a_file(const std::string& name, std::string_view bytes, bool first) {
  const std::string looks = looks_like(bytes);
  if (first) throw Error("{}: neither HDF5 nor zstd ({})", name, looks);
  throw Error("{}: more bytes after the end of the HDF5 file, and they are neither HDF5 nor zstd ({})", name, looks);
}

} // namespace

struct InputStream::State {
  std::string name;
  std::shared_ptr<const Descriptor> descriptor; ///< of a file on disk, as long as it is read through its mapping
  std::shared_ptr<const Mapping> mapping;
  std::uint64_t offset = 0;       ///< where the next file begins there
  std::optional<ByteInput> bytes; ///< what is not mapped
  std::uint64_t files = 0;
  bool expects_more = false;

  void map_or_stream(Descriptor opened);
  std::optional<Image> next_mapped();
  std::optional<Image> next_received();
};

void InputStream::State::map_or_stream(Descriptor opened) {
  struct stat status {};
  if (::fstat(opened, &status) != 0) throw Error("{}: {}", name, system_reason(errno));
  const off_t position = S_ISREG(status.st_mode) ? ::lseek(opened, 0, SEEK_CUR) : 0;
  if (!S_ISREG(status.st_mode) || position < 0 || status.st_size <= position) {
    bytes.emplace(std::move(opened), name);
    return;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  Mapping whole(::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened, 0), size);
  if (!whole) { // not every file system maps
    bytes.emplace(std::move(opened), name);
    return;
  }
  mapping = std::make_shared<const Mapping>(std::move(whole));
  descriptor = std::make_shared<const Descriptor>(std::move(opened));
  offset = static_cast<std::uint64_t>(position);
}

std::optional<Image> InputStream::State::next_mapped() {
  const std::string_view rest(reinterpret_cast<const char*>(mapping->data()) + offset, mapping->size() - offset);
  if (rest.empty()) return std::nullopt;
  const std::optional<std::uint64_t> length = hdf5_length([&](std::size_t size) { return rest.substr(0, size); }, name);
  if (length) {
    if (*length > rest.size()) cut_short(name, *length, rest.size());
    return Image{mapping, descriptor, std::exchange(offset, offset + *length), *length};
  }
  // Perhaps compressed: from here on the file is read as a stream.
  ::lseek(*descriptor, static_cast<off_t>(offset), SEEK_SET);
  bytes.emplace(Descriptor(::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0)), name);
  mapping.reset();
  return next_received();
}

std::optional<Image> InputStream::State::next_received() {
  if (!bytes->sniff()) return std::nullopt;
  const std::optional<std::uint64_t> length = hdf5_length([&](std::size_t size) { return bytes->peek(size); }, name);
  if (!length) not_a_file(name, bytes->peek(64), files == 0);
  // The other half is for what is made of it: arrays on a device or in the optimizer, as large again.
  const bool fits = *length <= available_memory() / 2;
  Mapping received = fits ? receive_in_memory(*bytes, name, *length) : receive_on_disk(*bytes, name, *length);
  return Image{std::make_shared<const Mapping>(std::move(received)), nullptr, 0, *length};
}

InputStream::InputStream(const std::string& path) : state_(std::make_unique<State>()) {
  state_->name = input_name(path);
  Descriptor descriptor = open_input(path);
  if (::isatty(descriptor) != 0) throw UsageError("{} is a terminal; redirect it or name a file", state_->name);
  state_->map_or_stream(std::move(descriptor));
}
InputStream::InputStream(InputStream&&) noexcept = default;
InputStream& InputStream::operator=(InputStream&&) noexcept = default;
InputStream::~InputStream() = default;

std::optional<FileReader> InputStream::next() {
  State& state = *state_;
  std::optional<Image> image = state.bytes ? state.next_received() : state.next_mapped();
  if (!image) {
    if (state.files == 0)
      throw Error("{}: empty{}", state.name, state.name == "stdin" ? "; did the program before this one fail?" : "");
    if (state.expects_more)
      throw Error("{}: ends after file {}, which announced another one; did the program before this one fail?",
                  state.name, state.files);
    return std::nullopt;
  }
  ++state.files;
  const std::string name = state.files == 1 ? state.name : fmt::format("{} (image {})", state.name, state.files);
  rehearse(*image, name);
  FileReader reader(std::make_unique<FileReader::State>(name, std::move(*image)));
  state.expects_more = reader.has_attribute("/", "noether_more") && reader.integer("/", "noether_more") != 0;
  return reader;
}

namespace {

FileReader open_only(const std::string& path, const Kind* kind) {
  InputStream stream(path);
  FileReader file = *stream.next();
  if (kind != nullptr) file.expect(*kind);
  if (stream.next()) throw Error("{}: holds more than one file, expected one", input_name(path));
  return file;
}

} // namespace

FileReader open_one(const std::string& path, Kind kind) { return open_only(path, &kind); }
FileReader open_one(const std::string& path) { return open_only(path, nullptr); }

} // namespace noether::store
