// Asks a database for its tables and columns before asking for rows.
#include "profiles/write/sqlite_table.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <sqlite3.h>

namespace decodelab {
namespace {

// Nothing in a trace is longer, neither a name nor the description of a session.
constexpr int kMostTextBytes = 1 << 26;

std::string select(SqliteSource& source, const std::string& table, const std::vector<std::string>& columns) {
  const std::set<std::string>& known = source.columns(table);
  std::string text;
  for (const std::string& column : columns) {
    text += text.empty() ? "SELECT " : ",";
    text += known.contains(column) ? '"' + column + '"' : "NULL";
  }
  return text + " FROM \"" + table + '"';
}

}  // namespace

SqliteSource::SqliteSource(const std::filesystem::path& path) : database_(path.string(), SQLite::OPEN_READONLY) {
  sqlite3_limit(database_.getHandle(), SQLITE_LIMIT_LENGTH, kMostTextBytes);
  database_.exec("PRAGMA trusted_schema=OFF; PRAGMA query_only=ON; PRAGMA cell_size_check=ON;");
  SQLite::Statement tables(database_, "SELECT name, sql FROM sqlite_master WHERE type='table'");
  std::vector<std::string> names;
  while (tables.executeStep()) {
    if (tables.getColumn(1).getString().starts_with("CREATE TABLE ")) {
      names.push_back(tables.getColumn(0).getString());
    }
  }
  SQLite::Statement columns(database_, "SELECT name FROM pragma_table_info(?)");
  for (const std::string& name : names) {
    columns.reset();
    columns.bind(1, name);
    std::set<std::string>& known = tables_[name];
    while (columns.executeStep()) {
      known.insert(columns.getColumn(0).getString());
    }
  }
}

bool SqliteSource::has(const std::string& table, const std::vector<std::string>& columns) const {
  const auto found = tables_.find(table);
  if (found == tables_.end()) {
    return false;
  }
  return std::all_of(columns.begin(), columns.end(),
                     [&](const std::string& column) { return found->second.contains(column); });
}

const std::set<std::string>& SqliteSource::columns(const std::string& table) const { return tables_.at(table); }

TableReader::TableReader(SqliteSource& source, const std::string& table, std::vector<std::string> columns)
    : columns_(std::move(columns)), statement_(source.database(), select(source, table, columns_)) {}

int TableReader::place(std::string_view column) const {
  return static_cast<int>(std::find(columns_.begin(), columns_.end(), column) - columns_.begin());
}

std::int64_t TableReader::number(std::string_view column, std::int64_t otherwise) const {
  const SQLite::Column value = statement_.getColumn(place(column));
  return value.isInteger() ? value.getInt64() : otherwise;
}

double TableReader::real(std::string_view column) const { return statement_.getColumn(place(column)).getDouble(); }

std::string TableReader::text(std::string_view column) const { return statement_.getColumn(place(column)).getString(); }

}  // namespace decodelab
