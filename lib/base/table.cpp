#include "base/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace noether {

std::string to_text(const Cell& cell, int digits) {
  if (const auto* count = std::get_if<std::int64_t>(&cell)) return std::to_string(*count);
  if (const auto* number = std::get_if<double>(&cell))
    return digits > 0 ? fmt::format("{:.{}g}", *number, digits) : fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&cell)) {
    std::string flat = *text;
    std::replace_if(
        flat.begin(), flat.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
    return flat;
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&cell)) {
    std::string list;
    for (const double number : *numbers) list += (list.empty() ? "" : ",") + to_text(number, digits);
    return list;
  }
  return "";
}

TableWriter::TableWriter(std::vector<Column> columns, TableFormat format, std::function<void(std::string_view)> sink)
    : columns_(std::move(columns)), format_(format), sink_(std::move(sink)) {
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(column.name);
  if (format_ != TableFormat::json) line(names);
}

void TableWriter::row(const std::vector<Cell>& cells) {
  if (rows_) return rows_(cells);
  if (format_ == TableFormat::json) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      std::visit(
          [&](const auto& value) {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
              object[columns_[i].name] = nullptr;
            else
              object[columns_[i].name] = value;
          },
          cells[i]);
    sink_(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return;
  }
  std::vector<std::string> fields;
  for (std::size_t i = 0; i < columns_.size(); ++i) fields.push_back(to_text(cells[i], columns_[i].digits));
  line(fields);
}

void TableWriter::line(const std::vector<std::string>& fields) {
  std::string text;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) text += format_ == TableFormat::aligned ? "  " : "\t";
    text += fields[i];
    // Rows are shown as they come, so a column's width is settled before its values are known: its name's, and room for
    // a number.
    if (format_ == TableFormat::aligned && i + 1 < fields.size()) {
      const std::size_t width = std::max<std::size_t>(columns_[i].name.size(), 10);
      if (fields[i].size() < width) text.append(width - fields[i].size(), ' ');
    }
  }
  sink_(text + "\n");
}

} // namespace noether
