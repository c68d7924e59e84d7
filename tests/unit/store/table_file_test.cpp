// Tables as files: what a column becomes, and that it is what the table said.
#include "store/table_file.h"

#include "store/scratch.h"
#include "store/stream.h"

#include <cmath>
#include <limits>

namespace noether::store {
namespace {

using Rows = std::vector<std::vector<Cell>>;

FileReader written(const Scratch& scratch, const std::vector<Column>& columns, const Rows& rows) {
  OutputStream output(scratch / "table.h5");
  output.write(table_file(columns, rows), {"{}"});
  output.close();
  return open_one(scratch / "table.h5", kTableFile);
}

TEST(TableFile, HasADatasetForEachColumn) {
  const Scratch scratch;
  const double third = 1.0 / 3, infinite = -std::numeric_limits<double>::infinity();
  const Rows rows{{std::int64_t{-5}, third, std::string("caf\u00e9"), Cell(), std::int64_t{1}},
                  {std::int64_t{7}, infinite, std::string(), 2.5, std::string("mixed")}};
  const FileReader file = written(scratch, {{"count"}, {"value", 3}, {"word"}, {"sometimes"}, {"either"}}, rows);
  EXPECT_EQ(file.string("/", "columns"), "count\tvalue\tword\tsometimes\teither");
  EXPECT_EQ(file.info("/table/count").type, Type::i64);
  EXPECT_EQ(file.read<std::int64_t>("/table/count"), (std::vector<std::int64_t>{-5, 7}));
  EXPECT_EQ(file.read<double>("/table/value"), (std::vector<double>{third, infinite})); // every digit
  EXPECT_EQ(file.texts("/table/word"), (std::vector<std::string>{"caf\u00e9", ""}));
  EXPECT_TRUE(std::isnan(file.read<double>("/table/sometimes")[0]));
  EXPECT_EQ(file.read<double>("/table/sometimes")[1], 2.5);
  EXPECT_EQ(file.texts("/table/either"), (std::vector<std::string>{"1", "mixed"}));
}

TEST(TableFile, MayBeEmptyOrLong) {
  const Scratch scratch;
  EXPECT_EQ(written(scratch, {{"a"}, {"b"}}, {}).read<double>("/table/b").size(), 0u);
  Rows rows; // beyond what HDF5 copies itself, also as texts
  for (std::int64_t i = 0; i < 20000; ++i) rows.push_back({i, "row " + std::to_string(i)});
  const FileReader file = written(scratch, {{"i"}, {"word"}}, rows);
  EXPECT_EQ(file.read<std::int64_t>("/table/i")[19999], 19999);
  EXPECT_EQ(file.texts("/table/word")[19999], "row 19999");
  EXPECT_EQ(file.texts("/table/word")[3], "row 3");
}

} // namespace
} // namespace noether::store
