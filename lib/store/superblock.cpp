// The few bytes of the HDF5 File Format Specification (sections II.A and III.A) that tell where a file ends.
#include "store/superblock.h"

#include "base/error.h"

#include <algorithm>
#include <array>

namespace noether::store {
namespace {

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
/// User blocks of a mebibyte and more exist only in the specification; a pipe is not read further to look for one.
constexpr std::size_t kLargestUserBlock = std::size_t{1} << 20;
constexpr std::size_t kSuperblock = 96; // bytes of the longest up to its end-of-file address, and a little more

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::uint64_t parse(std::string_view block, std::uint64_t location, const std::string& name) {
  const auto need = [&](std::size_t size) {
    if (block.size() < size)
      throw Error("{}: cut short: {} bytes, too few for an HDF5 file", name, location + block.size());
  };
  const auto byte = [&](std::size_t at) {
    need(at + 1);
    return static_cast<unsigned char>(block[at]);
  };
  const unsigned version = byte(8);
  if (version > 3) throw Error("{}: HDF5 superblock of version {}, expected 0 to 3", name, version);
  const std::size_t width = byte(version < 2 ? 13 : 9);
  if (width != 2 && width != 4 && width != 8)
    throw Error("{}: damaged HDF5 superblock: offsets of {} bytes", name, width);
  // Four addresses follow each other; the first is the base, the third the end of the file.
  constexpr std::array<std::size_t, 4> kAddresses{24, 28, 12, 12};
  const std::size_t base_at = kAddresses[version], end_at = base_at + 2 * width;
  need(end_at + width);
  const std::uint64_t base = little_endian(block.substr(base_at, width));
  const std::uint64_t end = little_endian(block.substr(end_at, width));
  // Both count from the start of the file as it was made. Where a block was put before it later, they do not, but their
  // difference stays right.
  std::uint64_t length = 0;
  if (end < base || __builtin_add_overflow(location, end - base, &length) || end - base < end_at + width)
    throw Error("{}: damaged HDF5 superblock: the file ends at {}, before its beginning", name, end);
  return length;
}

/// No control characters, and UTF-8 as far as it goes (its last character may be cut).
bool is_text(std::string_view bytes) {
  std::size_t continuations = 0;
  for (const unsigned char c : bytes) {
    const bool continuation = (c & 0xC0) == 0x80;
    if (continuation != (continuations > 0)) return false;
    if (continuation)
      --continuations;
    else if (c >= 0x80)
      continuations = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
    else if (c == 127 || (c < 32 && c != '\n' && c != '\r' && c != '\t'))
      return false;
  }
  return true;
}

} // namespace

std::optional<std::uint64_t> hdf5_length(const Peek& peek, const std::string& name) {
  for (std::size_t at = 0; at <= kLargestUserBlock; at = at == 0 ? 512 : 2 * at) {
    const std::string_view bytes = peek(at + kSuperblock);
    if (bytes.size() <= at) return std::nullopt;
    const std::string_view block = bytes.substr(at);
    if (block.starts_with(kSignature)) return parse(block, at, name);
    // Only the first bytes of an HDF5 file came.
    if (at == 0 && kSignature.starts_with(block)) return parse(block, at, name);
  }
  return std::nullopt;
}

std::string looks_like(std::string_view bytes) {
  struct Row {
    std::string_view start, text;
  };
  static constexpr std::array<Row, 12> kRows{{
      {"PK", "starts with PK: a zip archive; PyTorch's are for noether init from"},
      {"\x93NUMPY", "starts with \\x93NUMPY: a NumPy array"},
      {"GGUF", "starts with GGUF: a GGUF model"},
      {"\x1f\x8b", "a gzip file; gunzip it first"},
      {"BZh", "a bzip2 file; decompress it first"},
      {"\xfd"
       "7zXZ",
       "an xz file; decompress it first"},
      {"\x04\x22\x4d\x18", "an lz4 file; decompress it first"},
      {"\x80\x02", "a Python pickle"},
      {"\x80\x03", "a Python pickle"},
      {"\x80\x04", "a Python pickle"},
      {"CDF", "a classic netCDF file"},
      {"\x7f"
       "ELF",
       "a program"},
  }};
  for (const Row& row : kRows)
    if (bytes.starts_with(row.start)) return std::string(row.text);
  // safetensors: the length of a JSON header in eight bytes, then the header.
  if (bytes.size() > 9 && bytes[8] == '{' && little_endian(bytes.substr(0, 8)) < (std::uint64_t{1} << 32))
    return "a safetensors file; noether init from reads it";
  const std::string_view head = bytes.substr(0, 64);
  if (is_text(head)) {
    if (head.front() == '{' || head.front() == '[') return "looks like JSON";
    // Only what a terminal can show is repeated.
    const auto shown = [](char c) { return c >= ' ' && c <= '~'; };
    const std::string start(head.begin(), std::find_if_not(head.begin(), head.end(), shown));
    return start.empty() ? "text" : fmt::format("text: \"{}{}\"", start.substr(0, 20), start.size() > 20 ? "..." : "");
  }
  std::string hexadecimal;
  for (const unsigned char c : head.substr(0, 8)) hexadecimal += fmt::format(" {:02x}", c);
  return "starts with" + hexadecimal;
}

} // namespace noether::store
