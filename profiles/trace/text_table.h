// Tables and paragraphs of plain text that fit a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

inline constexpr std::size_t kTextColumns = 100;

/// The first column is on the left and gives way where a line would be too long; the others are on the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}

  /// As many cells as the header has.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::size_t size() const { return rows_.size() - 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "1,234,567".
std::string grouped(std::int64_t value);

/// Rounded to whole numbers from 100 on, else with one digit; 0 is "0".
std::string amount_text(double value);
std::string percent_text(double share);

/// Names come from files: what a terminal would act on is replaced.
std::string printable(std::string_view text);

/// A paragraph that ends after two lines, with "..." where there was more.
std::string finding(std::string_view first, std::string_view text, std::size_t indent);

/// `first` and then `text`, broken between words; lines after the first are indented by `indent`.
std::string paragraph(std::string_view first, std::string_view text, std::size_t indent);

}  // namespace decodelab
