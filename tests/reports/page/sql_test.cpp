// Rows as SQL: an SQLite that knows nothing of us reads back what the JSON says.
#include "reports/page/sql.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/page/json.h"
#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_run;

TEST(Sql, ReadsBackIntoATableWithAColumnForEveryKeyOfARow) {
  RunData data = sample_run();
  data.run.name = "Bobby's run; DROP TABLE decodelab";
  const RunSummary summary = summarize(data);
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE);
  database.exec(sql_table());
  database.exec(to_sql(summary));
  database.exec(sql_table());  // a second file may be read into the same table
  EXPECT_EQ(database.execAndGet("SELECT count(*) FROM decodelab").getInt64(), std::ssize(summary.rows));
  EXPECT_EQ(database.execAndGet("SELECT DISTINCT run_name FROM decodelab").getString(), data.run.name);
  SQLite::Statement row(database, "SELECT * FROM decodelab");
  for (const SummaryRow& expected : summary.rows) {
    ASSERT_TRUE(row.executeStep());
    const auto json = row_to_json(expected);
    for (const auto& [key, value] : json.items()) {
      const SQLite::Column column = row.getColumn(key.c_str());
      EXPECT_EQ(column.isNull(), value.is_null()) << key;
      if (value.is_number_integer()) {
        EXPECT_EQ(column.getInt64(), value.get<std::int64_t>()) << key;
      } else if (value.is_number_float()) {
        // SQLite reads decimals to 15 digits.
        EXPECT_NEAR(column.getDouble(), value.get<double>(), 1e-14 * std::abs(value.get<double>())) << key;
      } else if (value.is_string()) {
        EXPECT_EQ(column.getString(), value.get<std::string>()) << key;
      }
    }
  }
}

TEST(Sql, GivesEveryColumnTheTypeOfItsValues) {
  const std::string table = sql_table();
  EXPECT_TRUE(contains(
      table, {"CREATE TABLE IF NOT EXISTS decodelab (", "  run TEXT,", "  batch INTEGER,", "  engaged INTEGER,",
              "  p99_ns INTEGER,", "  time_ratio REAL,", "  p_t REAL,", "  bound_share REAL,",
              "  bound_share_low REAL,", "  peak_bytes INTEGER,", "  verdict TEXT,", "  flags TEXT,"}));
}

}  // namespace
}  // namespace decodelab
