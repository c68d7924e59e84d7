#include "text/json_lines.h"

#include "base/error.h"
#include "store/scratch.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace noether::text {
namespace {

using store::message;
using store::Scratch;
using store::spill;

std::vector<std::pair<std::int64_t, std::string>> names(const std::string& text) {
  const Scratch scratch;
  spill(scratch / "x.jsonl", text);
  std::vector<std::pair<std::int64_t, std::string>> found;
  for_each_json_line(scratch / "x.jsonl",
                     [&](const JsonLine& line) { found.emplace_back(line.line, line.string("name")); });
  return found;
}

/// What is said of this text, after the folder.
std::string complaint(const std::string& text) {
  const std::string said = message([&] { names(text); });
  return said.substr(said.find("x.jsonl"));
}

TEST(JsonLines, CountsBlankLinesAndSkipsThem) {
  const std::vector<std::pair<std::int64_t, std::string>> expected{{1, "a"}, {4, "b"}, {5, "\xc3\xa9"}};
  const std::string text = "{\"name\": \"a\"}\r\n\n \t\n{\"other\": [1], \"name\": \"b\"}\n{\"name\": \"\\u00e9\"}";
  EXPECT_EQ(names(text), expected);
  EXPECT_EQ(names(text + "\n"), expected);
}

TEST(JsonLines, ALineMayBeLongerThanWhatIsReadAtATime) {
  const std::string name(20'000'000, 'x');
  const auto found = names("{\"name\": \"" + name + "\"}\n{\"name\": \"y\"}\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].second, name);
  EXPECT_EQ(found[1].first, 2);
}

TEST(JsonLines, NamesTheLineThatIsWrong) {
  EXPECT_EQ(complaint("{\"name\": \"a\"}\n{\"name\": b}\n"), "x.jsonl:2: not valid JSON at byte 10 of the line");
  EXPECT_EQ(complaint("\n\n[1]\n"), "x.jsonl:3: expected a JSON object, found array");
  EXPECT_EQ(complaint("{\"nmae\": \"a\", \"b\": 1}"), "x.jsonl:1: no field name (found: b, nmae) (did you mean nmae?)");
  EXPECT_EQ(complaint("{\"name\": 3}"), "x.jsonl:1: expected a string in field name, found number");
  EXPECT_EQ(complaint("{\"name\": \"\xff\"}").substr(0, 27), "x.jsonl:1: not valid JSON a");
  EXPECT_EQ(complaint(""), "x.jsonl: empty");
  EXPECT_EQ(complaint("\x89HDF\r\n\x1a\nrest"), "x.jsonl: expected text, found an HDF5 file");
}

} // namespace
} // namespace noether::text
