// Small records of a file that has a JSON object a line, each looked at whole.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace noether::text {

struct JsonLine {
  nlohmann::json object;
  std::int64_t line; ///< from 1
  std::string where; ///< "x.jsonl:17": how messages begin

  /// A field's value. Throws Error when it is not there, naming those that are.
  const nlohmann::json& field(const std::string& name) const;
  /// The value of a field that is a string. Throws Error when it is something else.
  std::string string(const std::string& name) const;
};

/// Calls `use` for each line but blank ones. path: plain or zstd-compressed text, - for stdin. Returns the digest of
/// the text, for provenance. Throws Error for a file that is not there, is empty or is no text, and for a line that is
/// no JSON object.
std::string for_each_json_line(const std::string& path, const std::function<void(const JsonLine&)>& use);

} // namespace noether::text
