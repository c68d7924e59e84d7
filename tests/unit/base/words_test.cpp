// What people write and read: numbers, suggestions, tables.
#include "base/error.h"
#include "base/number.h"
#include "base/table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>

using namespace noether;

TEST(Nearest, FindsSlipsOfTheFinger) {
  const std::vector<std::string> options{"--layers", "--heads", "--kv-heads", "--width", "--lr"};
  EXPECT_EQ(nearest("--layer", options), std::vector<std::string>{"--layers"});
  EXPECT_EQ(nearest("--haeds", options).front(), "--heads");
  EXPECT_TRUE(nearest("--temperature", options).empty());
  EXPECT_LE(nearest("--head", {"--heads", "--headb", "--headc"}).size(), 2u);
  EXPECT_EQ(did_you_mean("widht", {"width"}), " (did you mean width?)");
  EXPECT_EQ(did_you_mean("zzz", {"width"}), "");
}

TEST(SystemReason, IsLowerCaseButKeepsAbbreviations) {
  EXPECT_EQ(system_reason(ENOSPC), "no space left on device");
  EXPECT_EQ(system_reason(ENOENT), "no such file or directory");
}

TEST(ParseCount, TakesWhatPeopleWrite) {
  EXPECT_EQ(parse_count("4096"), 4096);
  EXPECT_EQ(parse_count("1e3"), 1000);
  EXPECT_EQ(parse_count("4k"), 4000);
  EXPECT_EQ(parse_count("2.5M"), 2'500'000);
  EXPECT_EQ(parse_count("-1"), -1);
  EXPECT_EQ(parse_count("9223372036854775807"), INT64_MAX);
  for (const char* wrong : {"", "k", "1.5", "nan", "inf", "1e30", "12x", "0x10", " 1", "9223372036854775808"})
    EXPECT_EQ(parse_count(wrong), std::nullopt) << wrong;
}

TEST(ParseReal, IsFinite) {
  EXPECT_EQ(parse_real("1e-4"), 1e-4);
  EXPECT_EQ(parse_real("+0.5"), 0.5);
  for (const char* wrong : {"", "nan", "inf", "-inf", "1e999", "0.1.2", "1 "})
    EXPECT_EQ(parse_real(wrong), std::nullopt) << wrong;
}

TEST(Human, ThreeDigits) {
  EXPECT_EQ(human_count(950), "950");
  EXPECT_EQ(human_count(18'432), "18.4k");
  EXPECT_EQ(human_count(124'439'808), "124M");
  EXPECT_EQ(human_count(999'600), "1.00M");
  EXPECT_EQ(human_bytes(512), "512 bytes");
  EXPECT_EQ(human_bytes(4'002'060), "4.00 MB");
  EXPECT_EQ(human_duration(0.84), "0.8 s");
  EXPECT_EQ(human_duration(45), "45 s");
  EXPECT_EQ(human_duration(87), "1 min 27 s");
  EXPECT_EQ(human_duration(7500), "2 h 05 min");
}

namespace {
std::string rows(TableFormat format) {
  std::string text;
  TableWriter table({{"name"}, {"loss", 4}, {"count"}}, format, [&](std::string_view line) { text += line; });
  table.row({std::string("a\tb"), 3.14159265, std::int64_t{7}});
  table.row({std::monostate{}, -INFINITY, std::int64_t{-1}});
  return text;
}
} // namespace

TEST(Table, ListsStandInOneCell) {
  std::string text;
  const auto sink = [&](std::string_view line) { text += line; };
  const std::vector<double> list{0.5, 1.23456789, -2};
  TableWriter({{"losses", 3}}, TableFormat::tsv, sink).row({list});
  TableWriter({{"losses", 3}}, TableFormat::json, sink).row({list});
  EXPECT_EQ(text, "losses\n0.5,1.23,-2\n{\"losses\":[0.5,1.23456789,-2.0]}\n");
}

TEST(Table, Formats) {
  EXPECT_EQ(rows(TableFormat::tsv), "name\tloss\tcount\na b\t3.142\t7\n\t-inf\t-1\n");
  EXPECT_EQ(rows(TableFormat::aligned),
            "name        loss        count\na b         3.142       7\n            -inf        -1\n");
  EXPECT_EQ(rows(TableFormat::json),
            "{\"name\":\"a\\tb\",\"loss\":3.14159265,\"count\":7}\n{\"name\":null,\"loss\":null,\"count\":-1}\n");
}
