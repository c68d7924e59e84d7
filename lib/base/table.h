// Rows for people and for programs: tab-separated with a header, aligned on a terminal, or one JSON object a line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace noether {

/// Nothing (empty in TSV, null in JSON), a count, a number, text, or numbers (with commas between them in TSV).
using Cell = std::variant<std::monostate, std::int64_t, double, std::string, std::vector<double>>;

struct Column {
  std::string name;
  int digits = 6; ///< significant digits of its numbers in text, 0: as many as tell it apart; JSON has those
};

enum class TableFormat { tsv, aligned, json };

/// Writes rows as they come, so that a table can be followed while it is made.
class TableWriter {
public:
  /// sink takes whole lines.
  TableWriter(std::vector<Column> columns, TableFormat format, std::function<void(std::string_view)> sink);
  /// rows takes each row as it is.
  TableWriter(std::vector<Column> columns, std::function<void(const std::vector<Cell>&)> rows)
      : columns_(std::move(columns)), rows_(std::move(rows)) {}
  /// As many cells as columns.
  void row(const std::vector<Cell>& cells);

private:
  void line(const std::vector<std::string>& fields);
  std::vector<Column> columns_;
  TableFormat format_ = TableFormat::tsv;
  std::function<void(std::string_view)> sink_;
  std::function<void(const std::vector<Cell>&)> rows_;
};

/// One cell as text: numbers with `digits` significant digits; "nan", "inf", "-inf" as they are. Tabs and line ends in
/// text become spaces, so that a row stays a row.
std::string to_text(const Cell& cell, int digits);

} // namespace noether
