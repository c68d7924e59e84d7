// Numbers as they lie in the files of other programs.
#pragma once

#include "store/descriptor.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace noether::formats {

enum class TensorType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
std::string_view name_of(TensorType type);
std::int64_t bytes_of(TensorType type);
bool is_real(TensorType type);

/// A view into a file's bytes, little-endian: not aligned, and not always contiguous. Whoever makes one has compared
/// its reach with the bytes at hand.
struct Tensor {
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape, strides; ///< strides in elements
  const char* data = nullptr;
};
/// By name, in the order of the names.
using Tensors = std::map<std::string, Tensor>;

/// A name out of a file, as a message shows it: of no more than 80 bytes, and none that moves a terminal's cursor.
std::string shown(std::string_view name);
/// "[2, 3]".
std::string shown(const std::vector<std::int64_t>& shape);

/// The product of a shape; nothing when a size is negative, there are more than 16, or the product exceeds 2^48, beyond
/// any file.
std::optional<std::int64_t> count_of(const std::vector<std::int64_t>& shape);
/// Row-major numbers at `data`.
Tensor contiguous(TensorType type, std::vector<std::int64_t> shape, const char* data);

/// [count, ...]: the rows from `begin` on.
Tensor rows(Tensor tensor, std::int64_t begin, std::int64_t count);
/// The same numbers with two dimensions in each other's place.
Tensor swapped(Tensor tensor, std::size_t one, std::size_t other);
/// Dimension `which` as two, [size / inner, inner].
Tensor split(Tensor tensor, std::size_t which, std::int64_t inner);

/// Writes the numbers of a real type to out, in the order of the shape. Those of f64 are rounded.
void copy(const Tensor& tensor, float* out);

/// A regular file's bytes, where they lie.
class MappedFile {
public:
  /// Throws Error: no such file, a folder, empty.
  explicit MappedFile(const std::string& path);
  std::string_view bytes() const { return {reinterpret_cast<const char*>(mapping_.data()), mapping_.size()}; }

private:
  store::Mapping mapping_;
};

} // namespace noether::formats
