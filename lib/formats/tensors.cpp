// Strided views of numbers that are not ours, and their way into float32.
#include "formats/tensors.h"

#include "base/error.h"
#include "store/byte_input.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

namespace noether::formats {
namespace {

constexpr std::size_t kMostSizes = 16; // of a tensor

static_assert(std::endian::native == std::endian::little);

template <class T> T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// IEEE 754 binary16: 1, 5 and 10 bits.
float from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 31U, fraction = bits & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  return std::copysign(std::ldexp(static_cast<float>(fraction), -24), std::bit_cast<float>(sign));
}

/// Writes what is below the first `dimension` dimensions, and returns where the next number goes.
template <class Load>
float* copy_below(const Tensor& tensor, std::size_t dimension, const char* from, float* out, const Load& number) {
  if (dimension == tensor.shape.size()) {
    *out = number(from);
    return out + 1;
  }
  const std::int64_t size = tensor.shape[dimension], step = tensor.strides[dimension] * bytes_of(tensor.type);
  if (dimension + 1 < tensor.shape.size()) {
    for (std::int64_t i = 0; i < size; ++i) out = copy_below(tensor, dimension + 1, from + i * step, out, number);
    return out;
  }
  if (tensor.type == TensorType::f32 && tensor.strides[dimension] == 1) {
    std::memcpy(out, from, static_cast<std::size_t>(size) * sizeof(float));
    return out + size;
  }
  for (std::int64_t i = 0; i < size; ++i) out[i] = number(from + i * step);
  return out + size;
}

} // namespace

std::string_view name_of(TensorType type) {
  constexpr std::array kNames{"float64", "float32", "float16", "bfloat16", "int64",
                              "int32",   "int16",   "int8",    "uint8",    "boolean"};
  return kNames[static_cast<std::size_t>(type)];
}

std::int64_t bytes_of(TensorType type) {
  constexpr std::array kBytes{8, 4, 2, 2, 8, 4, 2, 1, 1, 1};
  return kBytes[static_cast<std::size_t>(type)];
}

bool is_real(TensorType type) { return type <= TensorType::bf16; }

std::string shown(std::string_view name) {
  std::string text(name.substr(0, 80));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return name.size() > text.size() ? text + "..." : text;
}

std::string shown(const std::vector<std::int64_t>& shape) {
  const std::size_t count = std::min(shape.size(), kMostSizes);
  return fmt::format("[{}{}]", fmt::join(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(count), ", "),
                     shape.size() > count ? ", ..." : "");
}

std::optional<std::int64_t> count_of(const std::vector<std::int64_t>& shape) {
  if (shape.size() > kMostSizes) return std::nullopt;
  std::int64_t count = 1;
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > std::int64_t{1} << 48) return std::nullopt;
  return count;
}

Tensor contiguous(TensorType type, std::vector<std::int64_t> shape, const char* data) {
  Tensor tensor{type, std::move(shape), {}, data};
  tensor.strides.resize(tensor.shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0; stride *= tensor.shape[i]) tensor.strides[i] = stride;
  return tensor;
}

Tensor rows(Tensor tensor, std::int64_t begin, std::int64_t count) {
  tensor.data += begin * tensor.strides[0] * bytes_of(tensor.type);
  tensor.shape[0] = count;
  return tensor;
}

Tensor swapped(Tensor tensor, std::size_t one, std::size_t other) {
  std::swap(tensor.shape[one], tensor.shape[other]);
  std::swap(tensor.strides[one], tensor.strides[other]);
  return tensor;
}

Tensor split(Tensor tensor, std::size_t which, std::int64_t inner) {
  const auto after = static_cast<std::ptrdiff_t>(which + 1);
  tensor.shape.insert(tensor.shape.begin() + after, inner);
  tensor.strides.insert(tensor.strides.begin() + after, tensor.strides[which]);
  tensor.shape[which] /= inner;
  tensor.strides[which] *= inner;
  return tensor;
}

void copy(const Tensor& tensor, float* out) {
  if (count_of(tensor.shape) == 0) return;
  switch (tensor.type) {
  case TensorType::f64:
    copy_below(tensor, 0, tensor.data, out, [](const char* at) { return static_cast<float>(load<double>(at)); });
    break;
  case TensorType::f32:
    copy_below(tensor, 0, tensor.data, out, [](const char* at) { return load<float>(at); });
    break;
  case TensorType::f16:
    copy_below(tensor, 0, tensor.data, out, [](const char* at) { return from_half(load<std::uint16_t>(at)); });
    break;
  case TensorType::bf16: // the upper half of a float32
    copy_below(tensor, 0, tensor.data, out,
               [](const char* at) { return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(at)} << 16); });
    break;
  default:
    throw Error("expected real numbers, found {}", name_of(tensor.type));
  }
}

MappedFile::MappedFile(const std::string& path) {
  const store::Descriptor file = store::open_input(path);
  struct stat status {};
  if (::fstat(file, &status) != 0) throw Error("{}: {}", path, system_reason(errno));
  if (!S_ISREG(status.st_mode)) throw Error("{}: not a regular file", path);
  if (status.st_size == 0) throw Error("{}: empty", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  mapping_ = store::Mapping(::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0), size);
  if (!mapping_) throw Error("{}: {}", path, system_reason(errno));
}

} // namespace noether::formats
