// Renderings of a table as text, Markdown and HTML.
#include "base/table.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/text.h"

namespace decodelab {
namespace {

constexpr std::size_t kTextSeparator = 2;

std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::size_t width = display_width(table.columns[column].name);
    for (const TableRow& row : table.rows) {
      width = std::max(width, display_width(row.fields.at(column)));
    }
    widths.push_back(width);
  }
  return widths;
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string spaces(width - std::min(width, display_width(text)), ' ');
  return right ? spaces + text : text + spaces;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::size_t width_of(const std::vector<std::size_t>& columns, std::size_t separator) {
  return std::accumulate(columns.begin(), columns.end(), separator * (columns.empty() ? 0 : columns.size() - 1));
}

// Makes the columns that may give way narrower until a line fits, or one letter and an ellipsis are left.
void narrow(std::vector<std::size_t>& widths, const std::vector<TableColumn>& columns) {
  for (std::size_t column = 0; column < widths.size(); ++column) {
    const std::size_t width = width_of(widths, kTextSeparator);
    if (columns[column].shortens && width > kTableWidth) {
      const std::size_t least = std::min<std::size_t>(widths[column], 4);
      widths[column] = std::max(least, widths[column] - std::min(widths[column], width - kTableWidth));
    }
  }
}

// Returns the table with every text escaped for Markdown, so that column widths are those of the printed text.
Table escaped_for_markdown(Table table) {
  for (TableColumn& column : table.columns) {
    column.name = escape_markdown(column.name);
  }
  for (TableRow& row : table.rows) {
    for (std::string& field : row.fields) {
      field = escape_markdown(field);
    }
  }
  return table;
}

}  // namespace

Table names_and_numbers(const std::vector<std::string>& header) {
  Table table;
  for (const std::string& name : header) {
    const bool first = table.columns.empty();
    table.columns.push_back({.name = name, .number = !first, .shortens = first});
  }
  return table;
}

std::size_t table_width(const Table& table, std::size_t separator, std::size_t margin) {
  return 2 * margin + width_of(column_widths(table), separator);
}

std::string to_text(const Table& table) {
  std::vector<std::size_t> widths = column_widths(table);
  narrow(widths, table.columns);
  const std::string gap(kTextSeparator, ' ');
  std::string text = table.title.empty() ? "" : wrap(table.title, kTableWidth) + "\n";
  std::string header;
  std::string rule;
  for (std::size_t column = 0; column < widths.size(); ++column) {
    header +=
        (column == 0 ? "" : gap) + padded(table.columns[column].name, widths[column], table.columns[column].number);
    rule += (column == 0 ? "" : gap) + std::string(widths[column], '-');
  }
  text += without_trailing_spaces(header) + "\n" + rule + "\n";
  for (const TableRow& row : table.rows) {
    std::string line;
    for (std::size_t column = 0; column < widths.size(); ++column) {
      line += (column == 0 ? "" : gap) +
              padded(shortened(row.fields[column], widths[column]), widths[column], table.columns[column].number);
    }
    text += without_trailing_spaces(line) + "\n";
  }
  for (const std::string& note : table.notes) {
    text += wrap(note, kTableWidth) + "\n";
  }
  return text;
}

std::string to_markdown(const Table& source) {
  const Table table = escaped_for_markdown(source);
  const std::vector<std::size_t> widths = column_widths(table);
  std::string text = fmt::format("### {}\n\n", escape_markdown(table.title));
  std::string header = "|";
  std::string rule = "|";
  for (std::size_t column = 0; column < widths.size(); ++column) {
    const bool number = table.columns[column].number;
    header += fmt::format(" {} |", padded(table.columns[column].name, widths[column], number));
    rule +=
        fmt::format(" {}{} |", std::string(std::max<std::size_t>(widths[column], 3) - number, '-'), number ? ":" : "");
  }
  text += header + "\n" + rule + "\n";
  for (const TableRow& row : table.rows) {
    std::string line = "|";
    for (std::size_t column = 0; column < widths.size(); ++column) {
      line += fmt::format(" {} |", padded(row.fields[column], widths[column], table.columns[column].number));
    }
    text += line + "\n";
  }
  text += "\n";
  for (const std::string& note : table.notes) {
    text += wrap("- " + escape_markdown(note), kTableWidth) + "\n";
  }
  return text;
}

std::string to_html(const Table& table) {
  std::string html =
      fmt::format("<div class=\"scroll\"><table><caption>{}</caption>\n<thead><tr>", escape_html(table.title));
  for (const TableColumn& column : table.columns) {
    html += fmt::format("<th{}>{}", column.number ? " class=n" : "", escape_html(column.name));
  }
  html += "</thead>\n<tbody>\n";
  // HTML allows the end tags of fields and rows to be left out, and a page has ten thousand of them.
  for (const TableRow& row : table.rows) {
    html += row.run_id == 0 ? "<tr>" : fmt::format("<tr data-run={} data-cell={}>", row.run_id, row.cell_id);
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      html += (table.columns[column].number ? "<td class=n>" : "<td>") + escape_html(row.fields[column]);
    }
    html += "\n";
  }
  html += "</tbody></table></div>\n";
  if (table.notes.empty()) {
    return html;
  }
  html += "<ul class=\"notes\">";
  for (const std::string& note : table.notes) {
    html += fmt::format("<li>{}</li>", escape_html(note));
  }
  return html + "</ul>\n";
}

}  // namespace decodelab
