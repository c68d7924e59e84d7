// safetensors, read where it lies.
#include "formats/safetensors.h"

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace noether::formats {
namespace {

using nlohmann::json;

constexpr std::size_t kLength = 8; // bytes of the header's length

std::optional<TensorType> type_of(std::string_view word) {
  constexpr std::pair<std::string_view, TensorType> kTypes[] = {
      {"F64", TensorType::f64}, {"F32", TensorType::f32},     {"F16", TensorType::f16}, {"BF16", TensorType::bf16},
      {"I64", TensorType::i64}, {"I32", TensorType::i32},     {"I16", TensorType::i16}, {"I8", TensorType::i8},
      {"U8", TensorType::u8},   {"BOOL", TensorType::boolean}};
  for (const auto& [known, type] : kTypes)
    if (known == word) return type;
  return std::nullopt;
}

/// Whole numbers that fit; nothing when the field is anything else.
std::optional<std::vector<std::int64_t>> numbers(const json& entry, const char* field) {
  const auto found = entry.find(field);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<std::int64_t> values;
  for (const json& value : *found) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{1} << 62) return std::nullopt;
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

} // namespace

bool begins_safetensors(std::string_view bytes) {
  return bytes.size() > kLength && bytes[kLength] == '{' && bytes[6] == 0 && bytes[7] == 0;
}

Tensors parse_safetensors(std::string_view bytes, const std::string& name) {
  if (bytes.size() < kLength)
    throw Error("{}: cut short: {} bytes, too few for a safetensors file", name, bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLength);
  if (length > bytes.size() - kLength)
    throw Error("{}: cut short: its header has {} bytes, and {} are there", name, length, bytes.size() - kLength);
  const json header = json::parse(bytes.substr(kLength, length), nullptr, false);
  if (!header.is_object())
    throw Error("{}: the header of a safetensors file is a JSON object, and here it is not", name);
  const std::string_view data = bytes.substr(kLength + length);

  struct Extent {
    std::int64_t begin, end;
  };
  std::vector<Extent> extents;
  Tensors tensors;
  for (const auto& [tensor, entry] : header.items()) {
    if (tensor == "__metadata__") continue;
    const auto shape = numbers(entry, "shape"), offsets = numbers(entry, "data_offsets");
    const std::string word = entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string()
                                 ? entry["dtype"].get<std::string>()
                                 : "";
    if (!shape || !offsets || offsets->size() != 2 || word.empty())
      throw Error("{}: {}: expected dtype, shape and two data_offsets", name, shown(tensor));
    const std::optional<TensorType> type = type_of(word);
    if (!type) throw Error("{}: {}: numbers of type {}, which is not supported", name, shown(tensor), shown(word));
    const std::optional<std::int64_t> count = count_of(*shape);
    const Extent extent{(*offsets)[0], (*offsets)[1]};
    if (!count || extent.end - extent.begin != *count * bytes_of(*type))
      throw Error("{}: {}: shape {} of {} does not fit into bytes {} to {}", name, shown(tensor), shown(*shape), word,
                  extent.begin, extent.end);
    if (static_cast<std::uint64_t>(extent.end) > data.size())
      throw Error("{}: cut short: {} ends {} bytes after the header, and {} are there", name, shown(tensor), extent.end,
                  data.size());
    extents.push_back(extent);
    tensors.emplace(tensor, contiguous(*type, *shape, data.data() + extent.begin));
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::int64_t end = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != end)
      throw Error("{}: the numbers of its tensors {} at byte {} after the header", name,
                  extent.begin < end ? "overlap" : "leave a gap", std::min(extent.begin, end));
    end = extent.end;
  }
  if (static_cast<std::uint64_t>(end) != data.size())
    throw Error("{}: {} bytes after its last tensor", name, data.size() - static_cast<std::uint64_t>(end));
  return tensors;
}

} // namespace noether::formats
