// A table as a file of kind table, for those who go on in another language: a dataset for each column.
#pragma once

#include "base/table.h"
#include "store/writer.h"

#include <vector>

namespace noether::store {

/// /table/NAME for each column, as long as the rows: int64 where every cell is a count, float64 where all are numbers
/// or empty (nan), else strings. The root's attribute `columns` names them in their order, with tabs between them.
FileWriter table_file(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows);

} // namespace noether::store
