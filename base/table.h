// Holds a table as data and renders it as text, Markdown and HTML.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace decodelab {

/// Widest line of a table or of its notes, so that a terminal and a mail show them unbroken.
inline constexpr std::size_t kTableWidth = 100;

struct TableColumn {
  std::string name;
  bool number = false;    ///< Aligned right.
  bool shortens = false;  ///< Cut in text, with an ellipsis, where a line would be wider than kTableWidth.
};

struct TableRow {
  /// The run and the cell of the store that the numbers come from, `data-run` and `data-cell` in HTML; both are 0 where
  /// a row is not of a single cell.
  std::int64_t run_id = 0;
  std::int64_t cell_id = 0;
  std::vector<std::string> fields;  ///< One for each column; plain text, escaped by the renderers.
};

struct Table {
  std::string title;  ///< Left out of text where it is empty.
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::vector<std::string> notes;  ///< Sentences beneath the table.

  /// Adds a row that is not of a single cell of a store.
  void add(std::vector<std::string> fields) { rows.push_back({.fields = std::move(fields)}); }
};

/// Returns an empty table without a title, of names in the first column, which is the one that gives way, and numbers
/// in the others.
Table names_and_numbers(const std::vector<std::string>& header);

/// Returns the width in columns of a rendering that puts `separator` columns between fields and `margin` columns at
/// both ends of a line.
std::size_t table_width(const Table& table, std::size_t separator, std::size_t margin);

/// Renders columns aligned with spaces; title and notes are wrapped at kTableWidth.
std::string to_text(const Table& table);
/// Renders a GitHub-flavoured table under a third-level heading.
std::string to_markdown(const Table& table);
/// Renders a <table> in a scrolling <div>, with its title as caption and the notes as a list.
std::string to_html(const Table& table);

}  // namespace decodelab
