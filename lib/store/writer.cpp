// What is to be in a file: a list of objects, and its digest. The layout is layout.cpp's.
#include "store/writer.h"

#include "base/error.h"
#include "base/threads.h"
#include "store/content.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace noether::store {
namespace {

struct TypeRow {
  std::size_t size;
  std::string_view name;
};
constexpr std::array<TypeRow, 7> kTypes{
    {{1, "uint8"}, {2, "uint16"}, {4, "uint32"}, {8, "uint64"}, {8, "int64"}, {4, "float32"}, {8, "float64"}}};

/// Control characters would make the lines that the digest is taken of ambiguous, and NUL ends names in HDF5.
void check_name(std::string_view name, std::string_view what) {
  const bool control = std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 32 || c == 127; });
  if (name.empty() || control) throw Error("\"{}\" cannot be the name of {}", name, what);
}

void check_path(const std::string& path) {
  check_name(path, "a dataset");
  if (path.size() < 2 || path.front() != '/' || path.back() == '/' || path.find("//") != std::string::npos)
    throw Error("\"{}\" is not an absolute path of a dataset", path);
}

std::string hash(const void* data, std::size_t size) {
  const XXH128_hash_t value = XXH3_128bits(data, size);
  return fmt::format("{:016x}{:016x}", value.high64, value.low64);
}

std::string hash(std::string_view text) { return hash(text.data(), text.size()); }

std::string attribute_line(const std::string& path, const AttributeContent& attribute) {
  struct {
    std::string operator()(std::int64_t value) const {
      return fmt::format("int64\t[]\t{}", hash(&value, sizeof value));
    }
    std::string operator()(double value) const { return fmt::format("float64\t[]\t{}", hash(&value, sizeof value)); }
    std::string operator()(const std::string& value) const { return fmt::format("string\t[]\t{}", hash(value)); }
  } rest;
  return fmt::format("{}\t{}\t{}\n", path, attribute.name, std::visit(rest, attribute.value));
}

} // namespace

std::size_t size_of(Type type) { return kTypes[static_cast<std::size_t>(type)].size; }
std::string_view name_of(Type type) { return kTypes[static_cast<std::size_t>(type)].name; }

ObjectContent& FileWriter::Content::find(const std::string& path) {
  const auto found = index.find(path);
  if (found == index.end()) throw Error("{} has not been added to the file", path);
  return objects[found->second];
}

ObjectContent& FileWriter::Content::add(const std::string& path, ObjectContent::What what) {
  if (const auto found = index.find(path); found != index.end()) throw Error("{} is added to the file twice", path);
  const std::string parent = path.substr(0, path.rfind('/'));
  if (!parent.empty()) {
    if (!index.contains(parent)) add(parent, ObjectContent::What::group);
    if (find(parent).what != ObjectContent::What::group) throw Error("{}: {} is not a group", path, parent);
  }
  index.emplace(path, objects.size());
  ObjectContent& object = objects.emplace_back();
  object.path = path;
  object.what = what;
  return object;
}

void FileWriter::Content::attribute(const std::string& path, const std::string& name,
                                    std::variant<std::int64_t, double, std::string> value) {
  check_name(name, "an attribute");
  if (path == "/" && name.starts_with("noether_")) throw Error("attribute {} belongs to the writer itself", name);
  std::vector<AttributeContent>& attributes = find(path).attributes;
  for (const AttributeContent& other : attributes)
    if (other.name == name) throw Error("attribute {} of {} is added twice", name, path);
  attributes.push_back({name, std::move(value)});
}

FileWriter::FileWriter(Kind kind) : content_(std::make_unique<Content>()) {
  content_->kind = kind;
  content_->objects.emplace_back().path.push_back('/');
  content_->index.emplace("/", 0);
}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter& FileWriter::operator=(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;

void FileWriter::attribute(const std::string& path, const std::string& name, std::int64_t value) {
  content_->attribute(path, name, value);
}
void FileWriter::attribute(const std::string& path, const std::string& name, double value) {
  content_->attribute(path, name, value);
}
void FileWriter::attribute(const std::string& path, const std::string& name, std::string_view value) {
  // Fixed-length strings are padded with NULs, so one in the text could not be told from the padding.
  if (value.find('\0') != std::string_view::npos) throw Error("attribute {} of {} holds a NUL", name, path);
  content_->attribute(path, name, std::string(value));
}

void FileWriter::text(const std::string& path, std::string_view value) {
  if (value.find('\0') != std::string_view::npos) throw Error("{}: the text holds a NUL", path);
  owned_array(path, Type::u8, {value.size()}, value.data());
  content_->find(path).what = ObjectContent::What::text;
}

void FileWriter::texts(const std::string& path, const std::vector<std::string>& values) {
  std::size_t width = 1; // HDF5 has no strings of length 0
  for (const std::string& value : values) {
    if (value.find('\0') != std::string::npos) throw Error("{}: a text holds a NUL", path);
    width = std::max(width, value.size());
  }
  std::string padded;
  for (const std::string& value : values) padded += value + std::string(width - value.size(), '\0');
  owned_array(path, Type::u8, {values.size(), width}, padded.data());
  ObjectContent& object = content_->find(path);
  object.what = ObjectContent::What::texts;
  object.shape = {values.size()};
  object.width = width;
}

void FileWriter::array(const std::string& path, Type type, const Shape& shape, const void* data) {
  check_path(path);
  if (path == "/provenance") throw Error("/provenance belongs to the writer itself");
  if (shape.size() > 32) throw Error("{}: {} dimensions, but HDF5 has up to 32", path, shape.size());
  std::uint64_t bytes = size_of(type);
  for (const std::uint64_t length : shape)
    if (__builtin_mul_overflow(bytes, length, &bytes))
      throw Error("{}: the shape [{}] is too large", path, fmt::join(shape, ", "));
  ObjectContent& object = content_->add(path, ObjectContent::What::array);
  object.type = type;
  object.shape = shape;
  object.data = data;
  object.size = bytes;
}

void FileWriter::owned_array(const std::string& path, Type type, const Shape& shape, const void* data) {
  array(path, type, shape, data);
  ObjectContent& object = content_->find(path);
  const auto* bytes = static_cast<const std::byte*>(data);
  if (object.size > 0) object.owned.assign(bytes, bytes + object.size);
  object.data = object.owned.data();
}

std::string FileWriter::digest() const {
  std::vector<const ObjectContent*> sorted;
  std::uint64_t total = 0;
  for (const auto& [path, position] : content_->index) {
    sorted.push_back(&content_->objects[position]);
    total += content_->objects[position].size;
  }
  // One array after another hashes at about the rate of one processor's memory reads; starting threads for less is a
  // loss.
  std::vector<std::string> hashes(sorted.size());
  parallel_for(static_cast<std::int64_t>(sorted.size()), total < (std::uint64_t{32} << 20) ? 1 : 0,
               [&](std::int64_t i) {
                 const auto at = static_cast<std::size_t>(i);
                 if (sorted[at]->what != ObjectContent::What::group)
                   hashes[at] = hash(sorted[at]->data, sorted[at]->size);
               });
  std::string lines;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const ObjectContent& object = *sorted[i];
    if (object.what == ObjectContent::What::text)
      lines += fmt::format("{}\t\tstring\t[]\t{}\n", object.path, hashes[i]);
    if (object.what == ObjectContent::What::texts)
      lines += fmt::format("{}\t\tstring\t[{}]\t{}\n", object.path, fmt::join(object.shape, ","), hashes[i]);
    if (object.what == ObjectContent::What::array)
      lines += fmt::format("{}\t\t{}\t[{}]\t{}\n", object.path, name_of(object.type), fmt::join(object.shape, ","),
                           hashes[i]);
    std::vector<AttributeContent> attributes = object.attributes;
    std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const AttributeContent& attribute : attributes) lines += attribute_line(object.path, attribute);
  }
  return hash(lines);
}

} // namespace noether::store
