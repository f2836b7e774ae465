// A table as data, and how it looks as text, Markdown and HTML.
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
  std::int64_t run_id = 0;  ///< Where the numbers come from in the store, `data-run` and `data-cell` in HTML; 0 where a
                            ///< row is no single cell.
  std::int64_t cell_id = 0;
  std::vector<std::string> fields;  ///< One for each column; plain text, escaped by the renderers.
};

struct Table {
  std::string title;
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::vector<std::string> notes;  ///< Sentences beneath the table.
};

/// Columns of a rendering in which fields are separated by `separator` columns and lines begin and end with `margin`.
std::size_t table_width(const Table& table, std::size_t separator, std::size_t margin);

/// Columns aligned with spaces; title and notes are wrapped at kTableWidth.
std::string to_text(const Table& table);
/// A GitHub-flavoured table under a third-level heading.
std::string to_markdown(const Table& table);
/// A <table> in a scrolling <div>, with its title as caption and the notes as a list.
std::string to_html(const Table& table);

}  // namespace decodelab
