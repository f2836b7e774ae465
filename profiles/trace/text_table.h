// Tables and paragraphs of plain text that fit a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

inline constexpr std::size_t kTextColumns = 100;

/// Lays out a table. The first column is aligned left and is shortened where a line would be too long; the others are
/// aligned right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}

  /// Adds a row, which must have as many cells as the header.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::size_t size() const { return rows_.size() - 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Returns a number as "1,234,567".
std::string grouped(std::int64_t value);

/// Returns a value rounded to a whole number from 100 on, else with one digit; 0 is "0".
std::string amount_text(double value);
std::string percent_text(double share);

/// Replaces what a terminal would act on, since names come from files.
std::string printable(std::string_view text);

/// Returns a paragraph that ends after two lines, with "..." where there was more.
std::string finding(std::string_view first, std::string_view text, std::size_t indent);

/// Returns `first` and then `text`, broken between words; lines after the first are indented by `indent`.
std::string paragraph(std::string_view first, std::string_view text, std::size_t indent);

}  // namespace decodelab
