// Holds a table as data and renders it as text, Markdown and HTML.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decodelab {

/// Widest line of a table or of its notes, so that a terminal and a mail show them unbroken.
inline constexpr std::size_t kTableWidth = 100;

struct TableColumn {
  std::string name;
  bool number = false;  ///< Aligned right.
};

struct TableRow {
  /// The run and the cell of the store that the numbers come from, `data-run` and `data-cell` in HTML; both are 0 where
  /// a row is not of a single cell.
  std::int64_t run_id = 0;
  std::int64_t cell_id = 0;
  std::vector<std::string> fields;  ///< One for each column; plain text, escaped by the renderers.
};

struct Table {
  std::string title;
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::vector<std::string> notes;  ///< Sentences beneath the table.
};

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
