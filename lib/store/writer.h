// One HDF5 file, put together without copying its large arrays: HDF5 itself writes only the metadata, into a sparse
// memory file; the arrays are sent from where they lie to the offsets that HDF5 gave them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace noether::store {

/// Element types of arrays in files, little-endian.
enum class Type { u8, u16, u32, u64, i64, f32, f64 };

std::size_t size_of(Type type);
/// "float32", "uint16", ... as NumPy says it.
std::string_view name_of(Type type);

// clang-format off
template <class T> struct TypeOf;
template <> struct TypeOf<std::uint8_t> { static constexpr Type value = Type::u8; };
template <> struct TypeOf<std::uint16_t> { static constexpr Type value = Type::u16; };
template <> struct TypeOf<std::uint32_t> { static constexpr Type value = Type::u32; };
template <> struct TypeOf<std::uint64_t> { static constexpr Type value = Type::u64; };
template <> struct TypeOf<std::int64_t> { static constexpr Type value = Type::i64; };
template <> struct TypeOf<float> { static constexpr Type value = Type::f32; };
template <> struct TypeOf<double> { static constexpr Type value = Type::f64; };
// clang-format on

/// Lengths of the dimensions, slowest first; empty for a scalar.
using Shape = std::vector<std::uint64_t>;

/// The kinds of file and the newest format number of each that this version reads and writes (noether-format(5)).
struct Kind {
  std::string_view name; // "tokenizer", "tokens", "checkpoint", "table", "tensors"
  int format;
};
inline constexpr Kind kTokenizerFile{"tokenizer", 1};
inline constexpr Kind kTokensFile{"tokens", 1};
inline constexpr Kind kCheckpointFile{"checkpoint", 1};
inline constexpr Kind kTableFile{"table", 1};
inline constexpr Kind kTensorsFile{"tensors", 1};

/// What is to be in a file. Nothing is laid out or sent before OutputStream::write() takes it.
/// Paths are absolute ("/parameters/layers/0/attention/W_Q"); groups in between are made. "/provenance" and root
/// attributes that begin with noether_ belong to the writer itself.
class FileWriter {
public:
  explicit FileWriter(Kind kind);
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) noexcept;
  ~FileWriter();

  /// Attributes of the object at `path` ("/" is the root), which must have been added before (or be a group on the way
  /// to one).
  void attribute(const std::string& path, const std::string& name, std::int64_t value);
  void attribute(const std::string& path, const std::string& name, double value);
  void attribute(const std::string& path, const std::string& name, std::string_view value);

  /// A scalar UTF-8 string dataset, of any length.
  void text(const std::string& path, std::string_view value);
  /// A list of UTF-8 strings, each padded with NULs to the longest.
  void texts(const std::string& path, const std::vector<std::string>& values);

  /// A contiguous, uncompressed array. `data` is borrowed: it must stay as it is until the file has been written.
  void array(const std::string& path, Type type, const Shape& shape, const void* data);
  template <class T> void array(const std::string& path, const Shape& shape, std::span<const T> data) {
    array(path, TypeOf<T>::value, shape, data.data());
  }
  /// The same, with a copy that the writer keeps: for small or temporary arrays.
  template <class T> void array(const std::string& path, const std::vector<T>& data) {
    owned_array(path, TypeOf<T>::value, {data.size()}, data.data());
  }
  void owned_array(const std::string& path, Type type, const Shape& shape, const void* data);

  /// The digest of the content so far: XXH3-128 as 32 hexadecimal digits, stored as root attribute noether_digest. It
  /// is taken of lines "PATH\tATTRIBUTE\tTYPE\t[2,3]\tHASH\n" in sorted order: a dataset's own line, where ATTRIBUTE is
  /// empty, then its attributes'. HASH is the XXH3-128 of the little-endian bytes (of a list of strings with their
  /// padding), TYPE as NumPy says it, or "string".
  /// Provenance and the noether_* attributes are left out, so equal content has an equal digest whenever and however it
  /// was made.
  std::string digest() const;

  struct Content; ///< store/content.h: for this room alone

private:
  friend class OutputStream;
  std::unique_ptr<Content> content_;
};

} // namespace noether::store
