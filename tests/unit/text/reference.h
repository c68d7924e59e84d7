// What the tests of this room share: base64 and random text.
#pragma once

#include "base/random.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace noether::text {

inline std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(c));
    if ((held += 6) >= 8) bytes += static_cast<char>(bits >> (held -= 8));
  }
  return bytes;
}

/// Up to `most` parts drawn from `pool`, by (seed, number).
template <std::size_t N>
std::string draw(const std::array<std::string_view, N>& pool, std::uint64_t seed, std::uint64_t number,
                 std::uint64_t most) {
  const Random random(seed, Purpose::kSample, number);
  std::string text;
  for (std::uint64_t i = 1; i <= random.below(0, most + 1); ++i) text += pool[random.below(i, N)];
  return text;
}

/// Pieces that meet every branch of the scanners: letters, numbers, blanks of one to three bytes, line ends,
/// contractions, marks, joiners, and bytes that are no UTF-8.
inline constexpr std::array<std::string_view, 36> kTricky{
    "a",      "b",      "Z",      "7",          "0",      " ",      " ",      "  ",       "\n",
    "\n",     "\r\n",   "\t",     "'",          "'s",     "'LL",    "'re",    "!",        "_",
    ".",      "\"",     "\x01",   "\u00e9",     "\u017f", "\u0301", "\u00a0", "\u3000",   "\u2028",
    "\u4f60", "\u3002", "\u0661", "\U0001F469", "\u200d", "\xff",   "\x80",   "\xe4\xbd", "\xed\xa0\x80"};

} // namespace noether::text
