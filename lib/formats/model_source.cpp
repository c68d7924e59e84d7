// Fields and tensors by name, each compared with what is expected of it.
#include "formats/model_source.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace noether::formats {

using namespace architecture;
using nlohmann::json;

const json* Settings::find(Names names) const {
  for (const char* name : names)
    if (const auto found = object.find(name); found != object.end() && !found->is_null()) return &*found;
  return nullptr;
}

void Settings::unfit(Names names, std::string_view expected, const json* found) const {
  throw Error("{}: {}: expected {}, found {}", where, *names.begin(), expected,
              found == nullptr ? "none" : shown(found->dump(-1, ' ', false, json::error_handler_t::replace)));
}

std::optional<std::int64_t> Settings::count_if(Names names) const {
  const json* found = find(names);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number_integer() || *found < 1 || *found > kLargestSize)
    unfit(names, fmt::format("a whole number from 1 to {}", kLargestSize), found);
  return found->get<std::int64_t>();
}

std::int64_t Settings::count(Names names) const {
  const std::optional<std::int64_t> value = count_if(names);
  if (!value) unfit(names, "a whole number", nullptr);
  return *value;
}

double Settings::real(Names names, double otherwise) const {
  const json* found = find(names);
  if (found == nullptr) return otherwise;
  if (!found->is_number() || !std::isfinite(found->get<double>())) unfit(names, "a finite number", found);
  return found->get<double>();
}

bool Settings::flag(Names names, bool otherwise) const {
  const json* found = find(names);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) unfit(names, "true or false", found);
  return found->get<bool>();
}

std::string Settings::word(Names names, const char* otherwise) const {
  const json* found = find(names);
  if (found == nullptr) return otherwise;
  if (!found->is_string()) unfit(names, "a string", found);
  return found->get<std::string>();
}

void Settings::must(const char* name, bool value) const {
  if (flag({name}, value) != value) unfit({name}, value ? "true" : "false", find({name}));
}

Settings Settings::below(const char* name) const {
  static const json none = json::object();
  const json* found = find({name});
  if (found != nullptr && !found->is_object()) unfit({name}, "an object", found);
  return {found == nullptr ? none : *found, fmt::format("{}: {}", where, name)};
}

const Tensor& Source::look(const std::string& name) {
  const auto found = model_.tensors.find(prefix_ + name);
  if (found == model_.tensors.end()) throw Error("{}: no tensor {}", model_.name, shown(prefix_ + name));
  taken_.insert(found->first);
  return found->second;
}

const Tensor& Source::take(const std::string& name, const std::vector<std::int64_t>& shape) {
  const Tensor& tensor = look(name);
  if (tensor.shape != shape)
    throw Error("{}: {}: expected shape {}, found {}", model_.name, shown(prefix_ + name), shown(shape),
                shown(tensor.shape));
  if (!is_real(tensor.type))
    throw Error("{}: {}: expected real numbers, found {}", model_.name, shown(prefix_ + name), name_of(tensor.type));
  return tensor;
}

std::vector<std::int64_t> Source::shape(const std::string& name, std::size_t dimensions) {
  const std::vector<std::int64_t>& found = look(name).shape;
  if (found.size() != dimensions ||
      !std::all_of(found.begin(), found.end(), [](std::int64_t size) { return size >= 1 && size <= kLargestSize; }))
    throw Error("{}: {}: expected {} sizes from 1 to {}, found {}", model_.name, shown(prefix_ + name), dimensions,
                kLargestSize, shown(found));
  return found;
}

std::vector<float> Source::numbers(const std::string& name, const std::vector<std::int64_t>& shape) {
  const Tensor& tensor = take(name, shape);
  std::vector<float> values(static_cast<std::size_t>(*count_of(shape)));
  copy(tensor, values.data());
  return values;
}

bool Source::any(const std::string& name) {
  if (!has(name)) return false;
  const std::vector<float> values = numbers(name, look(name).shape);
  return std::any_of(values.begin(), values.end(), [](float x) { return x != 0; });
}

void Source::place_qkv(const std::string& ours, const Tensor& all, const Config& config) {
  const std::int64_t q = config.heads * config.head_width, kv = config.kv_heads * config.head_width;
  place(ours + "Q", rows(all, 0, q));
  place(ours + "K", rows(all, q, kv));
  place(ours + "V", rows(all, q + kv, kv));
}

void Source::place_head(const std::string& name, const std::string& embedding, const Config& config) {
  const std::vector<std::int64_t> shape{config.vocab_size, config.width};
  if (!config.tied_head) {
    place("head/W_U", take(name, shape));
    return;
  }
  if (!has(name)) return;
  const Tensor &head = take(name, shape), &tokens = take(embedding, shape);
  if (head.data == tokens.data && head.strides == tokens.strides) return;
  if (numbers(name, shape) != numbers(embedding, shape))
    throw Error("{}: {} differs from {}, which its settings say it is", model_.name, shown(prefix_ + name),
                shown(prefix_ + embedding));
}

void Source::ignore(const std::string& layers, std::int64_t count, std::initializer_list<const char*> names) {
  for (std::int64_t i = 0; i < count; ++i)
    for (const char* name : names) taken_.insert(fmt::format("{}{}{}.{}", prefix_, layers, i, name));
}

Checkpoint Source::finish(const Config& config) const {
  for (const auto& [tensor, unused] : model_.tensors)
    if (tensor.starts_with(prefix_) && !taken_.contains(tensor))
      throw Error("{}: tensor {} has no place in a model of the family {}", model_.name, shown(tensor), config.family);
  try {
    validate(config);
  } catch (const UsageError& error) { // here it is the file that is wrong
    throw Error("{}: {}", model_.name, error.what());
  }
  Checkpoint checkpoint;
  checkpoint.config = config;
  checkpoint.layout = parameters(config);
  checkpoint.parameters = Arena(checkpoint.layout.back().offset + checkpoint.layout.back().count);
  for (const Parameter& parameter : checkpoint.layout)
    copy(places_.at(parameter.name), checkpoint.parameters.data() + parameter.offset);
  checkpoint.name = model_.name;
  checkpoint.digest = to_file(checkpoint, false).digest();
  return checkpoint;
}

} // namespace noether::formats
