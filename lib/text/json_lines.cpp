// Lines of JSON as trees. What is long, the documents of a training text, goes by json_field.h instead.
#include "text/json_lines.h"

#include "base/error.h"
#include "store/byte_input.h"
#include "text/documents.h"

#include <vector>

namespace noether::text {

const nlohmann::json& JsonLine::field(const std::string& name) const {
  const auto found = object.find(name);
  if (found != object.end()) return *found;
  std::vector<std::string> names;
  for (const auto& [there, value] : object.items()) names.push_back(there);
  throw Error("{}: no field {} (found: {}){}", where, name, fmt::join(names, ", "), did_you_mean(name, names));
}

std::string JsonLine::string(const std::string& name) const {
  const nlohmann::json& value = field(name);
  if (!value.is_string()) throw Error("{}: expected a string in field {}, found {}", where, name, value.type_name());
  return value.get<std::string>();
}

std::string for_each_json_line(const std::string& path, const std::function<void(const JsonLine&)>& use) {
  DocumentOptions options;
  options.division = Division::line;
  options.cut = false;
  DocumentReader reader({path}, options, PreTokenizer::gpt2);
  JsonLine line{{}, 0, ""};
  for (Batch batch; reader.next(batch);)
    for (std::size_t i = 0; i < batch.pieces.size(); ++i) {
      const std::string_view text = batch[i];
      line.where = fmt::format("{}:{}", store::input_name(path), ++line.line);
      if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      try {
        line.object = nlohmann::json::parse(text);
      } catch (const nlohmann::json::parse_error& error) {
        throw Error("{}: not valid JSON at byte {} of the line", line.where, error.byte);
      }
      if (!line.object.is_object())
        throw Error("{}: expected a JSON object, found {}", line.where, line.object.type_name());
      use(line);
    }
  return reader.digest();
}

} // namespace noether::text
