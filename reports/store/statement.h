// SQL statements with their values bound, for the files of the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

namespace decodelab {

/// Binds the values to the parameters 1, 2, ... of a statement.
template <class... Values>
SQLite::Statement prepared(SQLite::Database& database, const std::string& sql, const Values&... values) {
  SQLite::Statement statement(database, sql);
  int index = 0;
  const auto bind = [&](const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>) {
      statement.bind(++index, value ? 1 : 0);
    } else if constexpr (std::is_same_v<Value, std::optional<bool>> ||
                         std::is_same_v<Value, std::optional<std::int64_t>>) {
      value ? statement.bind(++index, static_cast<std::int64_t>(*value)) : statement.bind(++index);
    } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
      value ? statement.bind(++index, *value) : statement.bind(++index);
    } else {
      statement.bind(++index, value);
    }
  };
  (bind(values), ...);
  return statement;
}

/// Runs a statement that gives no rows; returns the id of the last row that was inserted.
template <class... Values>
std::int64_t execute(SQLite::Database& database, const std::string& sql, const Values&... values) {
  prepared(database, sql, values...).exec();
  return database.getLastInsertRowid();
}

/// Returns the id of the row with exactly these values; adds the row when it is not there yet.
template <class... Values>
std::int64_t shared_row(SQLite::Database& database, const std::string& table, const std::string& columns,
                        const Values&... values) {
  std::string marks;
  for (std::size_t i = 0; i < sizeof...(values); ++i) {
    marks += i == 0 ? "?" : ", ?";
  }
  execute(database, fmt::format("INSERT OR IGNORE INTO {} ({}) VALUES ({})", table, columns, marks), values...);
  auto select =
      prepared(database, fmt::format("SELECT id FROM {} WHERE ({}) = ({})", table, columns, marks), values...);
  select.executeStep();
  return select.getColumn(0).getInt64();
}

}  // namespace decodelab
