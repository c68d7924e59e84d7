// UTF-8 decoding after Unicode's table 3-7 and the classes of characters. Categories come from utf8proc, whose own
// two-stage table is as fast as a cache in front of it would be; normalisation and case are not done: bytes pass
// through unchanged.
#include "text/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

namespace noether::text {

CharClass class_of(std::uint32_t code_point) {
  switch (code_point) { // White_Space, whole: PropList.txt has had these since Unicode 6.3
  case 0x85:
  case 0xA0:
  case 0x1680:
  case 0x2028:
  case 0x2029:
  case 0x202F:
  case 0x205F:
  case 0x3000:
    return CharClass::space;
  default:
    if (code_point == ' ' || (code_point >= 9 && code_point <= 13) || (code_point >= 0x2000 && code_point <= 0x200A))
      return CharClass::space;
  }
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
    return CharClass::letter;
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO:
    return CharClass::number;
  default:
    return CharClass::other;
  }
}

namespace {

/// Bytes at `at` that agree with a character of the length that the first one announces, and that length; 0 and 0 when
/// the first byte begins no character.
struct Agreement {
  std::uint8_t agree, length;
};
Agreement agreement(const char* at, const char* end) {
  const auto byte = [at](int i) { return static_cast<unsigned char>(at[i]); };
  const unsigned lead = byte(0);
  const std::uint8_t length = lead < 0x80   ? 1
                              : lead < 0xC2 ? 0
                              : lead < 0xE0 ? 2
                              : lead < 0xF0 ? 3
                              : lead < 0xF5 ? 4
                                            : 0;
  std::uint8_t agree = length > 0 ? 1 : 0;
  for (; agree < length && at + agree < end; ++agree) {
    // The second byte alone decides about overlong forms, surrogates and what is above U+10FFFF.
    const bool second = agree == 1;
    const unsigned least = second && lead == 0xE0 ? 0xA0 : second && lead == 0xF0 ? 0x90 : 0x80;
    const unsigned most = second && lead == 0xED ? 0x9F : second && lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(agree) < least || byte(agree) > most) break;
  }
  return {agree, length};
}

} // namespace

Decoded decode_utf8(const char* at, const char* end) {
  const auto [agree, length] = agreement(at, end);
  if (length == 0 || agree < length) return {kMalformed, 1};
  if (length == 1) return {static_cast<unsigned char>(*at), 1};
  std::uint32_t code_point = static_cast<unsigned char>(*at) & (0x7FU >> length);
  for (int i = 1; i < length; ++i) code_point = code_point << 6 | (static_cast<unsigned char>(at[i]) & 0x3FU);
  return {code_point, length};
}

std::size_t utf8_beginning(const char* at, const char* end) {
  const auto [agree, length] = agreement(at, end);
  return agree < length ? agree : 0;
}

CharClass class_before(const char* begin, const char* at) {
  // A lead byte always begins a unit, whatever stands before it: so the unit that ends at `at` begins at the nearest
  // byte that is no continuation, if the character there reaches exactly to `at`; otherwise it is a malformed byte of
  // its own.
  for (const char* lead = at - 1; lead >= begin && at - lead <= 4; --lead) {
    if ((static_cast<unsigned char>(*lead) & 0xC0) == 0x80) continue;
    const Char unit = char_at(lead, at);
    return unit.length == at - lead ? unit.cls : CharClass::other;
  }
  return CharClass::other;
}

Char detail::char_beyond_ascii(const char* at, const char* end) {
  const Decoded decoded = decode_utf8(at, end);
  if (decoded.code_point == kMalformed) return {1, CharClass::other};
  return {decoded.length, class_of(decoded.code_point)};
}

std::string printable(std::string_view bytes) {
  std::string text;
  const char* const end = bytes.data() + bytes.size();
  for (const char* at = bytes.data(); at < end;) {
    const Decoded decoded = decode_utf8(at, end);
    const std::uint32_t point = decoded.code_point;
    if (point == ' ')
      text += "\u2423";
    else if (point == '\n' || point == '\t' || point == '\r' || point == '\\')
      text += point == '\n' ? "\\n" : point == '\t' ? "\\t" : point == '\r' ? "\\r" : "\\\\";
    else if (point < 0x20 || (point >= 0x7F && point < 0xA0) || point == kMalformed)
      for (int i = 0; i < decoded.length; ++i) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(at[i]));
    else
      text.append(at, decoded.length);
    at += decoded.length;
  }
  return text;
}

} // namespace noether::text
