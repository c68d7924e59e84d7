#include "base/number.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace noether {

std::optional<double> parse_real(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t whole = 0; // exact where it can be: a double holds 53 bits
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc{} && end == text.data() + text.size()) return whole;

  double factor = 1;
  if (text.size() > 1) {
    const std::string_view suffixes = "kMGT";
    const std::size_t power = suffixes.find(text.back() == 'K' ? 'k' : text.back());
    if (power != std::string_view::npos) {
      factor = std::pow(1000.0, static_cast<double>(power + 1));
      text.remove_suffix(1);
    }
  }
  const std::optional<double> value = parse_real(text);
  if (!value) return std::nullopt;
  const double scaled = *value * factor;
  if (std::abs(scaled) > 0x1p53 || std::abs(scaled - std::round(scaled)) > 1e-9 * std::abs(scaled)) return std::nullopt;
  return static_cast<std::int64_t>(std::round(scaled));
}

namespace {
/// Three digits and the largest of `units` (a thousand apart) that leaves at least one before the point.
std::string scaled(double value, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 && value == std::round(value) ? 0
                       : std::abs(value) < 9.995               ? 2
                       : std::abs(value) < 99.95               ? 1
                                                               : 0;
  return fmt::format("{:.{}f}{}", value, decimals, units[unit]);
}
} // namespace

std::string human_count(double value) { return scaled(value, {"", "k", "M", "G", "T"}); }
std::string human_bytes(double value) { return scaled(value, {" bytes", " kB", " MB", " GB", " TB"}); }

std::string human_duration(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

} // namespace noether
