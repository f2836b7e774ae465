// Rows of a run as SQL that any database takes, as llama-bench prints its own.
#pragma once

#include <string>

#include "reports/statistics/summary.h"

namespace decodelab {

/// `CREATE TABLE IF NOT EXISTS decodelab (...)`: the keys of row_to_json() after the run, its build and its machine.
std::string sql_table();
/// An INSERT for each row; NULL where unknown, true and false as 1 and 0, flags and counters as JSON text.
std::string to_sql(const RunSummary& summary);

}  // namespace decodelab
