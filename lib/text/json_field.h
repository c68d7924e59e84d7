// One string out of a line of JSON, without building the rest.
#pragma once

#include <string>
#include <string_view>

namespace noether::text {

/// Appends the string value of `field` in the JSON object `json` to `out`. `where` ("x.jsonl:17") begins the message of
/// the Error when it is no object, has no such field (those it has are named), or holds something else there.
void append_json_field(std::string_view json, const std::string& field, const std::string& where, std::string& out);

} // namespace noether::text
