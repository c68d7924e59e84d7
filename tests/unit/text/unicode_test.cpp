#include "text/unicode.h"

#include "text/bpe.h"

#include <gtest/gtest.h>

#include <string>

namespace noether::text {
namespace {

TEST(Unicode, SpacesAreTheWhiteSpaceProperty) {
  // PropList.txt of Unicode 15: 25 code points.
  int spaces = 0;
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) spaces += class_of(point) == CharClass::space ? 1 : 0;
  EXPECT_EQ(spaces, 25);
  for (const std::uint32_t point :
       {0x09, 0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2000, 0x200A, 0x2028, 0x202F, 0x205F, 0x3000})
    EXPECT_EQ(class_of(point), CharClass::space) << point;
  for (const std::uint32_t point : {0x1C, 0x180E, 0x200B, 0xFEFF})
    EXPECT_EQ(class_of(point), CharClass::other) << point;
}

TEST(Unicode, AsciiTableAgreesWithTheGeneralRule) {
  for (char c = 0; c >= 0 && c < 127; ++c)
    EXPECT_EQ(char_at(&c, &c + 1).cls, class_of(static_cast<std::uint32_t>(c))) << static_cast<int>(c);
}

// Unicode's table 3-7: each of these is refused at its first byte, so it is that many units of one byte.
TEST(Unicode, MalformedBytesAreUnitsOfTheirOwn) {
  for (const std::string bytes :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\xE4\xBD", "\xF0\x9F\x98", "\xC3"}) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const Char unit = char_at(bytes.data() + i, bytes.data() + bytes.size());
      EXPECT_EQ(unit.length, 1) << i;
      EXPECT_EQ(unit.cls, CharClass::other) << i;
    }
  }
}

TEST(Unicode, EveryCodePointIsReadBackForwardsAndBackwards) {
  for (std::uint32_t point = 1; point <= 0x10FFFF; point += 7) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    std::string bytes;
    const auto tail = [&](int shift) { return static_cast<char>(0x80 | (point >> shift & 0x3F)); };
    if (point < 0x80)
      bytes = {static_cast<char>(point)};
    else if (point < 0x800)
      bytes = {static_cast<char>(0xC0 | point >> 6), tail(0)};
    else if (point < 0x10000)
      bytes = {static_cast<char>(0xE0 | point >> 12), tail(6), tail(0)};
    else
      bytes = {static_cast<char>(0xF0 | point >> 18), tail(12), tail(6), tail(0)};
    const char* const end = bytes.data() + bytes.size();
    const Decoded decoded = decode_utf8(bytes.data(), end);
    ASSERT_EQ(decoded.code_point, point);
    ASSERT_EQ(decoded.length, bytes.size());
    ASSERT_EQ(class_before(bytes.data(), end), class_of(point)) << point;
    for (std::size_t cut = 1; cut < bytes.size(); ++cut)
      ASSERT_EQ(utf8_beginning(bytes.data(), bytes.data() + cut), cut) << point;
  }
}

// What Python's bytes.decode(errors="replace") gives for the same bytes; the table of section 3.9 in the Unicode
// standard.
TEST(Utf8Stream, ReplacesTheLongestBeginningOfACharacter) {
  struct Case {
    std::string bytes, text;
  };
  for (const Case& it :
       {Case{"abc", "abc"}, Case{"\xC3\xA9", "\u00e9"}, Case{"\xF0\x9F\x98\x80", "\U0001F600"},
        Case{"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd"},
        Case{"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"}, Case{"\xF0\x9F\x98", "\uFFFD"}, Case{"x\xE4\xBD", "x\uFFFD"},
        Case{"\xC0\xAF", "\uFFFD\uFFFD"}}) {
    Utf8Stream whole;
    std::string text = whole.push(it.bytes);
    EXPECT_EQ(text + whole.finish(), it.text);
    Utf8Stream bytewise;
    text.clear();
    for (const char byte : it.bytes) text += bytewise.push({&byte, 1});
    EXPECT_EQ(text + bytewise.finish(), it.text);
  }
}

} // namespace
} // namespace noether::text
