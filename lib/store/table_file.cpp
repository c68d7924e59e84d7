#include "store/table_file.h"

#include <algorithm>
#include <limits>

namespace noether::store {
namespace {

double number_of(const Cell& cell) {
  if (const auto* count = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*count);
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  return std::numeric_limits<double>::quiet_NaN();
}

} // namespace

FileWriter table_file(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
  FileWriter file(kTableFile);
  std::string names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string path = "/table/" + columns[i].name;
    const auto all = [&](const auto& is) {
      return std::all_of(rows.begin(), rows.end(), [&](const std::vector<Cell>& row) { return is(row[i]); });
    };
    if (!rows.empty() && all([](const Cell& cell) { return std::holds_alternative<std::int64_t>(cell); })) {
      std::vector<std::int64_t> values;
      for (const auto& row : rows) values.push_back(std::get<std::int64_t>(row[i]));
      file.array(path, values);
    } else if (all([](const Cell& cell) { return cell.index() <= 2; })) { // nothing, a count or a number
      std::vector<double> values;
      for (const auto& row : rows) values.push_back(number_of(row[i]));
      file.array(path, values);
    } else {
      std::vector<std::string> values;
      for (const auto& row : rows) values.push_back(to_text(row[i], 0));
      file.texts(path, values);
    }
    names += (i == 0 ? "" : "\t") + columns[i].name;
  }
  file.attribute("/", "columns", names);
  return file;
}

} // namespace noether::store
