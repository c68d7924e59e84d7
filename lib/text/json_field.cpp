// A SAX pass over one line: nothing but the wanted string is kept, so long records cost no tree.
#include "text/json_field.h"

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <vector>

namespace noether::text {
namespace {

/// nlohmann's interface. Fields are looked for at depth 1 only; of a field given twice the last counts, as in Python.
struct FieldFinder : nlohmann::json_sax<nlohmann::json> {
  explicit FieldFinder(const std::string& wanted) : field(wanted) {}

  const std::string& field;
  std::optional<std::string> found;
  std::vector<std::string> names; ///< of the object's fields, the first few: for the message
  std::string type;               ///< of the field, when it is no string
  std::size_t depth = 0, error_at = 0;
  bool object = false, here = false;

  bool value(const char* what) {
    if (depth == 1 && here) {
      type = what;
      found.reset();
    }
    return depth > 0;
  }
  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a number"); }
  bool binary(binary_t&) override { return value("binary data"); }
  bool string(string_t& text) override {
    if (depth == 1 && here) found = std::move(text);
    return depth > 0;
  }
  bool start_object(std::size_t) override {
    if (depth == 0) object = true;
    if (!value("an object") && !object) return false;
    ++depth;
    return true;
  }
  bool start_array(std::size_t) override {
    if (!value("a list")) return false;
    ++depth;
    return true;
  }
  bool end_object() override { return depth-- > 0; }
  bool end_array() override { return depth-- > 0; }
  bool key(string_t& name) override {
    if (depth != 1) return true;
    here = name == field;
    if (names.size() < 8) names.push_back(name);
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    error_at = at;
    return false;
  }
};

} // namespace

void append_json_field(std::string_view json, const std::string& field, const std::string& where, std::string& out) {
  FieldFinder finder(field);
  const bool parsed = nlohmann::json::sax_parse(json.begin(), json.end(), &finder);
  if (!parsed && finder.error_at > 0) throw Error("{}: not valid JSON at byte {} of the line", where, finder.error_at);
  if (!parsed || !finder.object) throw Error("{}: expected a JSON object", where);
  if (finder.found) {
    out += *finder.found;
    return;
  }
  if (!finder.type.empty()) throw Error("{}: expected a string in field {}, found {}", where, field, finder.type);
  throw Error("{}: no field {} (found: {}){}", where, field, fmt::join(finder.names, ", "),
              did_you_mean(field, finder.names));
}

} // namespace noether::text
