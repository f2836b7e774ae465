// Computes column widths and breaks lines.
#include "profiles/trace/text_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr std::size_t kBetween = 2;
constexpr std::string_view kEllipsis = "...";

std::string shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) {
    return text;
  }
  const bool with_ellipsis = width > kEllipsis.size();
  std::size_t kept = with_ellipsis ? width - kEllipsis.size() : width;
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80) {
    --kept;  // Never cuts inside of a UTF-8 character.
  }
  return text.substr(0, kept) + std::string(with_ellipsis ? kEllipsis : "");
}

}  // namespace

std::string TextTable::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row.at(i).size());
    }
  }
  const std::size_t others = std::accumulate(widths.begin() + 1, widths.end(), kBetween * (widths.size() - 1));
  widths[0] = std::min(widths[0], others < kTextColumns ? kTextColumns - others : 1);
  std::string text;
  for (const auto& row : rows_) {
    std::string line = fmt::format("{:<{}}", shortened(row[0], widths[0]), widths[0]);
    for (std::size_t i = 1; i < widths.size(); ++i) {
      line += fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t place = digits.size(); place > sign + 3; place -= 3) {
    digits.insert(place - 3, ",");
  }
  return digits;
}

std::string amount_text(double value) {
  if (value == 0) {
    return "0";
  }
  if (std::abs(value) >= 100 && std::abs(value) < 1e18) {
    return grouped(std::llround(value));
  }
  return value == std::round(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string printable(std::string_view text) {
  std::string printed(text);
  unsigned char before = 0;
  for (char& letter : printed) {
    const auto code = static_cast<unsigned char>(letter);
    const bool second_control_set = before == 0xC2 && code >= 0x80 && code < 0xA0;
    if (code < ' ' || code == 0x7f || second_control_set) {
      letter = '?';
    }
    before = code;
  }
  return printed;
}

std::string finding(std::string_view first, std::string_view text, std::size_t indent) {
  std::string whole = paragraph(first, text, indent);
  const std::size_t first_line = whole.find('\n');
  const std::size_t second_line = whole.find('\n', first_line + 1);
  if (second_line == std::string::npos || second_line + 1 == whole.size()) {
    return whole;
  }
  std::size_t length = std::min(second_line, first_line + 1 + kTextColumns - kEllipsis.size() - 1);
  length = whole.find_last_not_of(" ;,:", length - 1) + 1;
  return whole.substr(0, length) + " " + std::string(kEllipsis) + "\n";
}

std::string paragraph(std::string_view first, std::string_view text, std::size_t indent) {
  std::string result;
  std::string line(first);
  const std::string words = printable(text);
  bool line_is_empty = line.empty();
  std::size_t place = 0;
  while (place < words.size()) {
    const std::size_t begin = words.find_first_not_of(' ', place);
    if (begin == std::string::npos) {
      break;
    }
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    std::string word = words.substr(begin, end - begin);
    place = end;
    if (!line_is_empty && line.size() + word.size() + 1 > kTextColumns) {
      result += line + "\n";
      line = std::string(indent, ' ');
      line_is_empty = true;
    }
    const std::size_t room = kTextColumns - std::min(kTextColumns - 1, line.size() + 1);
    line += (line_is_empty || line.back() == ' ' ? "" : " ") + shortened(word, room);
    line_is_empty = false;
  }
  return result + line + "\n";
}

}  // namespace decodelab
