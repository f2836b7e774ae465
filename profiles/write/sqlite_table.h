// Reads columns of a SQLite table that may lack some of them, from an untrusted file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>

namespace decodelab {

/// Opens a database for reading only, and runs no views, virtual tables or functions of the file's own. Throws
/// SQLite::Exception.
class SqliteSource final {
 public:
  explicit SqliteSource(const std::filesystem::path& path);

  /// Returns whether there is a plain table of that name with these columns.
  bool has(const std::string& table, const std::vector<std::string>& columns = {}) const;
  SQLite::Database& database() { return database_; }
  const std::set<std::string>& columns(const std::string& table) const;

 private:
  SQLite::Database database_;
  std::map<std::string, std::set<std::string>> tables_;
};

/// Reads the rows of one table, with NULL in the place of columns that it lacks.
class TableReader final {
 public:
  TableReader(SqliteSource& source, const std::string& table, std::vector<std::string> columns);

  bool next() { return statement_.executeStep(); }
  /// Returns whether the table has that column and this row has a value in it.
  bool has(std::string_view column) const { return !statement_.getColumn(place(column)).isNull(); }
  /// Returns the number in a column, or `otherwise` where it is missing; a value that is no number counts as missing.
  std::int64_t number(std::string_view column, std::int64_t otherwise = 0) const;
  double real(std::string_view column) const;
  std::string text(std::string_view column) const;

 private:
  int place(std::string_view column) const;

  std::vector<std::string> columns_;
  mutable SQLite::Statement statement_;
};

}  // namespace decodelab
