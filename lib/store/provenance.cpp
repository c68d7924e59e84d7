// Provenance records as JSON. Keys keep one order, so that equal runs give equal bytes.
#include "store/provenance.h"

#include "base/error.h"
#include "base/version.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace noether::store {
namespace {

/// Seconds since 1970: now, or what SOURCE_DATE_EPOCH says (reproducible-builds.org).
std::time_t moment() {
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH"); // NOLINT(concurrency-mt-unsafe): nothing here sets it
  if (fixed == nullptr) return std::time(nullptr);
  const std::string_view text = fixed;
  std::time_t seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  // 253402300799 is the last second of the year 9999, after which ISO 8601 has no four-digit year.
  if (problem != std::errc{} || end != text.data() + text.size() || seconds < 0 || seconds > 253402300799)
    throw UsageError("SOURCE_DATE_EPOCH is \"{}\", expected seconds since 1970", text);
  return seconds;
}

std::string iso_8601(std::time_t seconds) {
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

} // namespace

std::string to_json(const ProvenanceRecord& record) {
  nlohmann::ordered_json json;
  json["tool"] = record.tool;
  json["version"] = kVersion;
  json["arguments"] = record.arguments;
  if (record.seed) json["seed"] = *record.seed;
  json["time"] = iso_8601(moment());
  json["inputs"] = nlohmann::ordered_json::array();
  for (const ProvenanceRecord::Input& input : record.inputs)
    json["inputs"].push_back({{"kind", input.kind}, {"digest", input.digest}});
  // Arguments are bytes (file names); what is not UTF-8 in them becomes U+FFFD.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<std::string> extend_provenance(const std::vector<std::vector<std::string>>& inputs,
                                           const ProvenanceRecord& record) {
  std::vector<std::string> records;
  for (const std::vector<std::string>& input : inputs)
    for (const std::string& earlier : input)
      if (std::find(records.begin(), records.end(), earlier) == records.end()) records.push_back(earlier);
  records.push_back(to_json(record));
  return records;
}

} // namespace noether::store
