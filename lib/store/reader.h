// Reading one HDF5 file, whether it came through a pipe or lies on disk. Nothing that its header says is trusted.
#pragma once

#include "store/writer.h"

#include <optional>

namespace noether::store {

struct ArrayInfo {
  std::optional<Type> type; ///< nothing when it is not one of ours (a string, a compound, ...)
  Shape shape;
  std::uint64_t count = 0; ///< product of shape; checked against overflow
};

/// An open HDF5 file. Every error names the file ("stdin" for a pipe), the dataset, what was expected and what was
/// found.
class FileReader {
public:
  FileReader(FileReader&&) noexcept;
  FileReader& operator=(FileReader&&) noexcept;
  ~FileReader();

  const std::string& name() const;   ///< for messages: "model.h5", "stdin", "stdin (image 2)"
  const std::string& kind() const;   ///< noether_kind; empty in a foreign file
  const std::string& digest() const; ///< noether_digest; "" in a foreign file
  /// Throws Error unless the file is of this kind and of a format no newer than this version reads:
  /// "tokens.h5: expected a checkpoint, found a tokens file".
  void expect(Kind kind) const;
  /// Its provenance records, JSON objects, oldest first; empty in a foreign file.
  std::vector<std::string> provenance() const;

  bool has(const std::string& path) const;
  /// Full paths of the datasets below `group`, sorted; soft and external links are not followed.
  std::vector<std::string> datasets(const std::string& group = "/") const;
  ArrayInfo info(const std::string& path) const;

  bool has_attribute(const std::string& path, const std::string& name) const;
  std::int64_t integer(const std::string& path, const std::string& name) const;
  double number(const std::string& path, const std::string& name) const;
  std::string string(const std::string& path, const std::string& name) const;
  /// A scalar string dataset.
  std::string text(const std::string& path) const;
  /// A list of strings.
  std::vector<std::string> texts(const std::string& path) const;

  /// Copies the whole array to `out`, converting between number types (an integer that does not fit is an error).
  /// The array must hold exactly `count` elements.
  void read(const std::string& path, Type type, void* out, std::uint64_t count) const;
  template <class T> std::vector<T> read(const std::string& path) const {
    std::vector<T> values(checked_count(path));
    read(path, TypeOf<T>::value, values.data(), values.size());
    return values;
  }
  /// The array where it lies: mapped, not copied, when it is contiguous and of type T (all of ours are), so that files
  /// larger than memory can be used; otherwise converted into memory. Valid as long as the reader.
  template <class T> std::span<const T> view(const std::string& path) const {
    const auto [data, count] = view_bytes(path, TypeOf<T>::value);
    return {static_cast<const T*>(data), count};
  }

  struct State; ///< store/image.h: for this room alone
  explicit FileReader(std::unique_ptr<State> state);
  const State& state() const { return *state_; }

private:
  std::uint64_t checked_count(const std::string& path) const;
  std::pair<const void*, std::uint64_t> view_bytes(const std::string& path, Type type) const;
  std::unique_ptr<State> state_;
};

} // namespace noether::store
