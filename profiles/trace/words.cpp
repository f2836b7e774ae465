// Formats numbers and breaks lines.
#include "profiles/trace/words.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"

namespace decodelab {
namespace {

constexpr std::string_view kEllipsis = "...";

}  // namespace

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
  std::size_t length = std::min(second_line, first_line + 1 + kTableWidth - kEllipsis.size() - 1);
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
    if (!line_is_empty && line.size() + word.size() + 1 > kTableWidth) {
      result += line + "\n";
      line = std::string(indent, ' ');
      line_is_empty = true;
    }
    const std::size_t room = kTableWidth - std::min(kTableWidth - 1, line.size() + 1);
    line += (line_is_empty || line.back() == ' ' ? "" : " ") + shortened(word, room);
    line_is_empty = false;
  }
  return result + line + "\n";
}

}  // namespace decodelab
