// PyTorch archives: the pickle's descriptions of calls are understood where they make tensors.
#include "formats/torch_archive.h"

#include "base/error.h"
#include "formats/pickle.h"
#include "formats/zip.h"

#include <array>
#include <utility>

namespace noether::formats {
namespace {

using nlohmann::json;
using Kind = PickleValue::Kind;

constexpr std::string_view kTensor = "torch._utils._rebuild_tensor_v2", kParameter = "torch._utils._rebuild_parameter";
constexpr int kDeepest = 32; // nested values
/// Values and their names, in bytes; a list that is in several places counts each time.
constexpr std::size_t kMost = std::size_t{1} << 26;

std::optional<TensorType> storage_type(std::string_view global) {
  constexpr std::array<std::pair<std::string_view, TensorType>, 10> kTypes{
      {{"torch.DoubleStorage", TensorType::f64},
       {"torch.FloatStorage", TensorType::f32},
       {"torch.HalfStorage", TensorType::f16},
       {"torch.BFloat16Storage", TensorType::bf16},
       {"torch.LongStorage", TensorType::i64},
       {"torch.IntStorage", TensorType::i32},
       {"torch.ShortStorage", TensorType::i16},
       {"torch.CharStorage", TensorType::i8},
       {"torch.ByteStorage", TensorType::u8},
       {"torch.BoolStorage", TensorType::boolean}}};
  for (const auto& [known, type] : kTypes)
    if (known == global) return type;
  return std::nullopt;
}

PickleName known(std::string_view global) {
  if (global == kTensor || global == kParameter || storage_type(global)) return PickleName::value;
  if (global == "GPTConfig" || global.ends_with(".GPTConfig")) return PickleName::record;
  return PickleName::refused;
}

struct Reader {
  const std::string& name;
  const std::map<std::string, std::string_view>& entries;
  std::string root; ///< "model/"
  TorchArchive archive{};
  std::size_t size = 0;

  [[noreturn]] void unfit(const std::string& path) const {
    throw Error("{}: {}: not put together as torch.save does", name, path.empty() ? "its pickle" : shown(path));
  }

  std::vector<std::int64_t> sizes(const PickleValue& value, const std::string& path) const {
    std::vector<std::int64_t> numbers;
    if (value.kind != Kind::tuple && value.kind != Kind::list) unfit(path);
    for (const PickleValue* item : value.items) {
      if (item->kind != Kind::integer) unfit(path);
      numbers.push_back(item->integer);
    }
    return numbers;
  }

  /// The bytes and the type behind ("storage", type, key, device, count).
  std::pair<std::string_view, TensorType> storage(const PickleValue& value, const std::string& path) const {
    if (value.kind != Kind::persistent || value.items[0]->kind != Kind::tuple) unfit(path);
    const std::vector<const PickleValue*>& identity = value.items[0]->items;
    if (identity.size() != 5 || identity[0]->text != "storage" || identity[1]->kind != Kind::global ||
        identity[2]->kind != Kind::text || identity[4]->kind != Kind::integer)
      unfit(path);
    const std::optional<TensorType> type = storage_type(identity[1]->text);
    if (!type) unfit(path);
    const auto entry = entries.find(root + "data/" + identity[2]->text);
    if (entry == entries.end())
      throw Error("{}: {}: no entry {}data/{}", name, shown(path), shown(root), shown(identity[2]->text));
    const std::int64_t count = identity[4]->integer;
    if (count < 0 || count > std::int64_t{1} << 48 ||
        static_cast<std::uint64_t>(count * bytes_of(*type)) != entry->second.size())
      throw Error("{}: {}: {} numbers of type {} in an entry of {} bytes", name, shown(path), count, name_of(*type),
                  entry->second.size());
    return {entry->second, *type};
  }

  Tensor tensor(const PickleValue& call, const std::string& path, int depth) const {
    const std::string& function = call.items[0]->text;
    const std::vector<const PickleValue*>& arguments = call.items[1]->items;
    if (function == kParameter) { // a tensor that is trained
      if (arguments.empty() || arguments[0]->kind != Kind::call || depth > 1) unfit(path);
      return tensor(*arguments[0], path, depth + 1);
    }
    if (function != kTensor || arguments.size() < 4 || arguments[1]->kind != Kind::integer) unfit(path);
    const auto [bytes, type] = storage(*arguments[0], path);
    const std::int64_t offset = arguments[1]->integer;
    Tensor tensor{type, sizes(*arguments[2], path), sizes(*arguments[3], path), nullptr};
    const std::optional<std::int64_t> count = count_of(tensor.shape);
    if (!count || tensor.strides.size() != tensor.shape.size() || offset < 0) unfit(path);
    std::int64_t last = offset; // the farthest of its numbers
    for (std::size_t i = 0; i < tensor.shape.size() && *count > 0; ++i) {
      std::int64_t reach = 0;
      if (tensor.strides[i] < 0 || __builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach) ||
          __builtin_add_overflow(last, reach, &last))
        unfit(path);
    }
    const std::int64_t stored = static_cast<std::int64_t>(bytes.size()) / bytes_of(type);
    if (*count > 0 && last >= stored)
      throw Error("{}: {}: reaches number {} of {} that are stored", name, shown(path), last + 1, stored);
    // A stride of 0 shows one number many times: what is made of it may not outgrow the file.
    if (*count > stored) throw Error("{}: {}: {} numbers out of {} that are stored", name, shown(path), *count, stored);
    tensor.data = *count > 0 ? bytes.data() + offset * bytes_of(type) : bytes.data();
    return tensor;
  }

  /// What `value` is beside tensors, which go where they belong: nothing for a tensor.
  std::optional<json> read(const PickleValue& value, const std::string& path, int depth) {
    size += 1 + path.size() + value.text.size();
    if (depth > kDeepest) throw Error("{}: values nested without end", name);
    if (size > kMost) throw Error("{}: more values than its bytes stand for", name);
    const auto below = [&path](const std::string& key) { return path.empty() ? key : path + "." + key; };
    switch (value.kind) {
    case Kind::none:
      return json();
    case Kind::boolean:
      return json(value.integer != 0);
    case Kind::integer:
      return json(value.integer);
    case Kind::real:
      return json(value.real);
    case Kind::text:
      return json(value.text);
    case Kind::list:
    case Kind::tuple: {
      json list = json::array();
      for (std::size_t i = 0; i < value.items.size(); ++i)
        if (std::optional<json> item = read(*value.items[i], below(std::to_string(i)), depth + 1))
          list.push_back(std::move(*item));
      return list;
    }
    case Kind::dictionary: {
      json object = json::object();
      for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
        const PickleValue& key = *value.items[i];
        if (key.kind != Kind::text && key.kind != Kind::integer) unfit(path);
        const std::string word = key.kind == Kind::text ? key.text : std::to_string(key.integer);
        if (std::optional<json> item = read(*value.items[i + 1], below(word), depth + 1))
          object[word] = std::move(*item);
      }
      return object;
    }
    case Kind::call:
      if (!archive.tensors.emplace(path, tensor(value, path, 0)).second)
        throw Error("{}: two tensors called {}", name, shown(path));
      return std::nullopt;
    case Kind::bytes:
    case Kind::global:
    case Kind::persistent:
      break;
    }
    unfit(path);
  }
};

} // namespace

bool begins_torch_archive(std::string_view bytes) { return bytes.starts_with("PK\3\4"); }

TorchArchive parse_torch_archive(std::string_view bytes, const std::string& name) {
  const auto entries = parse_stored_zip(bytes, name);
  std::optional<std::string> root;
  std::string_view pickled;
  for (const auto& [entry, content] : entries) {
    constexpr std::string_view kPickle = "data.pkl";
    const std::size_t slash = entry.find('/');
    if (slash == std::string::npos || entry.substr(slash + 1) != kPickle) continue;
    if (root) throw Error("{}: two pickles, expected one", name);
    root = entry.substr(0, slash + 1);
    pickled = content;
  }
  if (!root) throw Error("{}: a zip archive without a data.pkl: torch.save did not write it", name);
  const auto order = entries.find(*root + "byteorder");
  if (order != entries.end() && order->second != "little")
    throw Error("{}: numbers in {}-endian order, expected little", name, shown(order->second.substr(0, 8)));

  const Pickle pickle = parse_pickle(pickled, name, known);
  Reader reader{name, entries, *root};
  reader.archive.settings = reader.read(*pickle.root, "", 0).value_or(json::object());
  return std::move(reader.archive);
}

} // namespace noether::formats
