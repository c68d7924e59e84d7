// The directory of a zip archive. Source: PKWARE's APPNOTE 6.3.10, sections 4.3 to 4.5; one disk, and nothing
// compressed.
#include "formats/zip.h"

#include "base/error.h"
#include "formats/tensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace noether::formats {
namespace {

constexpr std::size_t kEnd = 22, kLocator = 20, kEnd64 = 56, kEntry = 46, kLocal = 30; // bytes before what varies
constexpr std::size_t kLongestComment = 65535;
constexpr std::uint64_t kIn64 = 0xFFFFFFFF; // the number stands in the zip64 record

/// Little-endian numbers out of a record, which the caller has measured.
template <class T> std::uint64_t number(std::string_view record, std::size_t at) {
  T value;
  std::memcpy(&value, record.data() + at, sizeof value);
  return value;
}

struct Zip {
  std::string_view bytes;
  const std::string& name;

  [[noreturn]] void damaged(const char* what) const { throw Error("{}: damaged zip archive: {}", name, what); }

  /// `size` bytes at `at`, which is only a claim.
  std::string_view record(std::uint64_t at, std::uint64_t size, const char* what) const {
    if (at > bytes.size() || size > bytes.size() - at) damaged(what);
    return bytes.substr(at, size);
  }

  std::size_t find_end() const {
    if (bytes.size() < kEnd) throw Error("{}: cut short: {} bytes, too few for a zip archive", name, bytes.size());
    const std::size_t last = bytes.size() - kEnd;
    for (std::size_t at = last;; --at) {
      if (bytes.substr(at).starts_with("PK\5\6") && number<std::uint16_t>(bytes, at + 20) == last - at) return at;
      if (at == 0 || last - at == kLongestComment) break;
    }
    throw Error("{}: cut short: a zip archive without its directory, which comes last", name);
  }

  /// Sizes and place of an entry, from the zip64 field where the directory's own are too short.
  void widen(std::string_view extra, std::uint64_t& size, std::uint64_t& packed, std::uint64_t& place) const {
    while (extra.size() >= 4) {
      const std::uint64_t kind = number<std::uint16_t>(extra, 0), length = number<std::uint16_t>(extra, 2);
      extra.remove_prefix(4);
      if (length > extra.size()) damaged("an entry's field reaches beyond it");
      if (kind != 1) {
        extra.remove_prefix(length);
        continue;
      }
      std::string_view field = extra.substr(0, length);
      for (std::uint64_t* value : {&size, &packed, &place}) {
        if (*value != kIn64) continue;
        if (field.size() < 8) damaged("an entry's zip64 field is too short");
        *value = number<std::uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return;
    }
  }
};

} // namespace

std::map<std::string, std::string_view> parse_stored_zip(std::string_view bytes, const std::string& name) {
  const Zip zip{bytes, name};
  const std::size_t end = zip.find_end();
  std::uint64_t count = number<std::uint16_t>(bytes, end + 10), size = number<std::uint32_t>(bytes, end + 12),
                place = number<std::uint32_t>(bytes, end + 16);
  if (end >= kLocator && bytes.substr(end - kLocator).starts_with("PK\6\7")) {
    const std::string_view wide =
        zip.record(number<std::uint64_t>(bytes, end - kLocator + 8), kEnd64, "no zip64 directory where it should be");
    if (!wide.starts_with("PK\6\6")) zip.damaged("no zip64 directory where it should be");
    count = number<std::uint64_t>(wide, 32);
    size = number<std::uint64_t>(wide, 40);
    place = number<std::uint64_t>(wide, 48);
  }

  std::map<std::string, std::string_view> entries;
  std::string_view directory = zip.record(place, size, "its directory reaches beyond the file");
  for (; count > 0; --count) {
    if (directory.size() < kEntry || !directory.starts_with("PK\1\2")) zip.damaged("its directory ends too early");
    const std::uint64_t flags = number<std::uint16_t>(directory, 8), method = number<std::uint16_t>(directory, 10),
                        named = number<std::uint16_t>(directory, 28), extra = number<std::uint16_t>(directory, 30),
                        comment = number<std::uint16_t>(directory, 32);
    if (directory.size() - kEntry < named + extra + comment) zip.damaged("its directory ends too early");
    const std::string entry(directory.substr(kEntry, named));
    std::uint64_t packed = number<std::uint32_t>(directory, 20), whole = number<std::uint32_t>(directory, 24),
                  at = number<std::uint32_t>(directory, 42);
    zip.widen(directory.substr(kEntry + named, extra), whole, packed, at);
    directory.remove_prefix(kEntry + named + extra + comment);

    if ((flags & 1) != 0) throw Error("{}: {} is encrypted", name, shown(entry));
    if (method != 0 || packed != whole)
      throw Error("{}: {} is compressed (method {}), and only stored entries are read", name, shown(entry), method);
    const std::string_view local = zip.record(at, kLocal, "an entry begins beyond the file");
    if (!local.starts_with("PK\3\4")) zip.damaged("no entry where its directory says one");
    const std::uint64_t skip = kLocal + number<std::uint16_t>(local, 26) + number<std::uint16_t>(local, 28);
    zip.record(at, skip, "an entry begins beyond the file");
    if (!entries.emplace(entry, zip.record(at + skip, whole, "an entry reaches beyond the file")).second)
      throw Error("{}: two entries called {}", name, shown(entry));
  }
  return entries;
}

} // namespace noether::formats
