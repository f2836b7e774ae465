// Reads columns of a SQLite table that may lack some of them, from a file that nobody vouches for.
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

/// A database that is only read: no views, no virtual tables, no functions of the file's own are run. Throws
/// SQLite::Exception.
class SqliteSource final {
 public:
  explicit SqliteSource(const std::filesystem::path& path);

  /// Whether there is a plain table of that name with these columns.
  bool has(const std::string& table, const std::vector<std::string>& columns = {}) const;
  SQLite::Database& database() { return database_; }
  const std::set<std::string>& columns(const std::string& table) const;

 private:
  SQLite::Database database_;
  std::map<std::string, std::set<std::string>> tables_;
};

/// The rows of one table, with NULL in the place of columns that it lacks.
class TableReader final {
 public:
  TableReader(SqliteSource& source, const std::string& table, std::vector<std::string> columns);

  bool next() { return statement_.executeStep(); }
  /// Whether the table has that column and this row a value in it.
  bool has(std::string_view column) const { return !statement_.getColumn(place(column)).isNull(); }
  /// What is no number counts as missing.
  std::int64_t number(std::string_view column, std::int64_t otherwise = 0) const;
  double real(std::string_view column) const;
  std::string text(std::string_view column) const;

 private:
  int place(std::string_view column) const;

  std::vector<std::string> columns_;
  mutable SQLite::Statement statement_;
};

}  // namespace decodelab
