// Characters of UTF-8 text and their classes, as the patterns of pre-tokenizers ask for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace noether::text {

/// What the patterns distinguish: \p{L}, \p{N}, \s, and everything else. Exact: no character is in two of them.
enum class CharClass : std::uint8_t { letter, number, space, other };

/// One unit of text: a character, or one byte that is not part of well-formed UTF-8 (Unicode's table 3-7: no overlong
/// forms, no surrogates, nothing above U+10FFFF). Such a byte is a unit of its own, of class `other`: it never counts
/// as a letter, number or space, and it passes through unchanged.
struct Char {
  std::uint8_t length; ///< bytes
  CharClass cls;
};

/// Class of a code point. Letters and numbers by utf8proc's general categories (L*, N*); spaces by Unicode's
/// White_Space property, which is what \s means to the regular expressions of tiktoken and Hugging Face: U+0085 is one,
/// U+001C and U+200B are not. The Unicode version is utf8proc's (15.0 in Debian 12): characters assigned later are of
/// class `other`.
CharClass class_of(std::uint32_t code_point);

/// The code point of the well-formed character that begins at `at`, and its length in bytes; length 1 and kMalformed
/// where none does. at < end.
struct Decoded {
  std::uint32_t code_point;
  std::uint8_t length;
};
inline constexpr std::uint32_t kMalformed = 0xFFFFFFFF;
Decoded decode_utf8(const char* at, const char* end);

/// Bytes at `at` that begin a well-formed character but do not end it: 0 to 3. at < end.
std::size_t utf8_beginning(const char* at, const char* end);

/// Bytes for the eye, such as a token's: printable characters as they are, a visible blank (U+2423), escapes for the
/// rest
/// (\n, \t, \r, \\, \xff).
std::string printable(std::string_view bytes);

/// The unit that ends where `at` points; begin < at.
CharClass class_before(const char* begin, const char* at);

namespace detail {
Char char_beyond_ascii(const char* at, const char* end);

constexpr std::uint8_t kBeyondAscii = 255;
constexpr std::array<std::uint8_t, 256> ascii_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    const bool space = byte == ' ' || (byte >= 9 && byte <= 13);
    const CharClass cls = letter                       ? CharClass::letter
                          : byte >= '0' && byte <= '9' ? CharClass::number
                          : space                      ? CharClass::space
                                                       : CharClass::other;
    classes[byte] = byte < 128 ? static_cast<std::uint8_t>(cls) : kBeyondAscii;
  }
  return classes;
}
inline constexpr std::array<std::uint8_t, 256> kAsciiClass = ascii_classes();
} // namespace detail

/// The unit that begins at `at`; at < end.
inline Char char_at(const char* at, const char* end) {
  const std::uint8_t cls = detail::kAsciiClass[static_cast<unsigned char>(*at)];
  if (cls != detail::kBeyondAscii) [[likely]]
    return {1, static_cast<CharClass>(cls)};
  return detail::char_beyond_ascii(at, end);
}

/// The end of the longest run of units of class `cls` that begins at `at`; at <= end.
inline const char* run_end(const char* at, const char* end, CharClass cls) {
  for (;;) {
    while (at < end && detail::kAsciiClass[static_cast<unsigned char>(*at)] == static_cast<std::uint8_t>(cls)) ++at;
    if (at == end || detail::kAsciiClass[static_cast<unsigned char>(*at)] != detail::kBeyondAscii) return at;
    const Char unit = detail::char_beyond_ascii(at, end);
    if (unit.cls != cls) return at;
    at += unit.length;
  }
}

} // namespace noether::text
