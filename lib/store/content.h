// What a FileWriter has collected, for this room alone.
#pragma once

#include "store/writer.h"

#include <cstddef>
#include <map>
#include <variant>

namespace noether::store {

struct AttributeContent {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

/// A group, a text, a list of texts or an array; `data` points to borrowed memory or into `owned`.
struct ObjectContent {
  enum class What { group, text, texts, array };
  std::string path;
  What what = What::group;
  Type type = Type::u8;  // of an array
  Shape shape;           // of an array, and of a list of texts
  std::size_t width = 0; // bytes of each text of a list
  const void* data = nullptr;
  std::uint64_t size = 0; // bytes
  std::vector<std::byte> owned;
  std::vector<AttributeContent> attributes;
};

struct FileWriter::Content {
  Kind kind;
  std::vector<ObjectContent> objects; ///< as they were added, groups before what is in them; the first is the root
  std::map<std::string, std::size_t> index;

  ObjectContent& find(const std::string& path);
  ObjectContent& add(const std::string& path, ObjectContent::What what);
  void attribute(const std::string& path, const std::string& name,
                 std::variant<std::int64_t, double, std::string> value);
};

} // namespace noether::store
