// Numbers as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace noether {

/// A whole number: "4096", "1e3", "4k", "2.5M", "1G" (powers of 1000). Nothing when it is not one, or does not fit.
std::optional<std::int64_t> parse_count(std::string_view text);
/// A finite number: "0.5", "1e-4". Nothing for "nan", "inf", or trailing letters.
std::optional<double> parse_real(std::string_view text);

/// "950", "18.4k", "124M": three digits.
std::string human_count(double value);
/// "512 bytes", "4.0 MB" (powers of 1000).
std::string human_bytes(double value);
/// "0.8 s", "45 s", "1 min 27 s", "2 h 05 min".
std::string human_duration(double seconds);

} // namespace noether
