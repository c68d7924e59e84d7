#include "bifurcate/subcommands.h"

#include "base/number.h"

#include <limits>
#include <sstream>

namespace noether {

std::vector<double> parse_values(const std::string& option, const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  const double nan = std::numeric_limits<double>::quiet_NaN(); // what is missing fails every comparison
  const double first = parse_real(parts.empty() ? "" : parts[0]).value_or(nan);
  if (parts.size() == 1 && !std::isnan(first)) return {first};
  const double last = parse_real(parts.size() == 3 ? parts[1] : "").value_or(nan);
  const auto count = static_cast<std::int64_t>(parse_count(parts.size() == 3 ? parts[2] : "").value_or(0));
  if (!(first < last) || count < 2 || count > 100'000'000)
    throw UsageError("{}: expected a number, or FIRST:LAST:COUNT with 2 or more in rising order, found {}", option,
                     text);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(first + (last - first) * static_cast<double>(i) / static_cast<double>(count - 1));
  return values;
}

void parse_interval(const std::string& option, const std::string& text, maps::Axis& axis) {
  const std::size_t colon = text.find(':');
  const auto low = parse_real(text.substr(0, colon));
  const auto high = colon == std::string::npos ? std::nullopt : parse_real(text.substr(colon + 1));
  if (!low || !high || !(*low < *high)) throw UsageError("{}: expected LOW:HIGH, found {}", option, text);
  axis.low = *low;
  axis.high = *high;
}

} // namespace noether
