// Formatting of times, bytes, ratios, labels and dates; escaping for HTML, Markdown, scripts and CSV.
#include "reports/page/format.h"

#include <array>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr double kTenfold = 9;  // as a share: ten times is 900 % more
constexpr double kLargestRatio = 1000;

struct Unit {
  double size;
  const char* name;
};

// Four significant digits; never in the form 1.234e+04.
std::string significant(double value) {
  const double magnitude = std::abs(value);
  return fmt::format("{:.{}f}", value, magnitude < 9.9995 ? 3 : magnitude < 99.995 ? 2 : magnitude < 999.95 ? 1 : 0);
}

template <std::size_t N>
const Unit& fitting(const std::array<Unit, N>& units, double value) {
  // 0.99995 of a unit is printed as 1.000 of it.
  for (const Unit& unit : units) {
    if (std::abs(value) >= unit.size * 0.99995) return unit;
  }
  return units.back();
}

// Each character as `replacement(character, the one after it or 0)` says; itself where that is empty.
std::string replace_each(std::string_view text, auto&& replacement) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (const std::string_view other = replacement(text[i], next); !other.empty()) {
      result += other;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

std::string format_time(double ns) {
  static constexpr std::array<Unit, 4> kUnits{{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
  const Unit& unit = fitting(kUnits, ns);
  return fmt::format("{} {}", unit.size == 1 ? fmt::format("{:.0f}", ns) : significant(ns / unit.size), unit.name);
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array<Unit, 5> kUnits{
      {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}}};
  const Unit& unit = fitting(kUnits, static_cast<double>(bytes));
  return unit.size == 1 ? fmt::format("{} B", bytes)
                        : fmt::format("{} {}", significant(static_cast<double>(bytes) / unit.size), unit.name);
}

std::string format_percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", share * 100) : "unknown";
}

std::string format_detectable(double share) { return share > kTenfold ? "none" : format_percent(share); }

std::string format_ratio(double ratio) {
  if (ratio > kLargestRatio) return fmt::format("over {:.0f}", kLargestRatio);
  if (ratio < 1 / kLargestRatio) return fmt::format("under {}", 1 / kLargestRatio);
  return fmt::format("{:.4f}", ratio);
}

std::string format_ratio(const SummaryRow& row) {
  if (!row.time_ratio) return "";
  if (row.arm.baseline) return "1";
  if (!row.time_ratio_low) return fmt::format("{} {}", format_ratio(*row.time_ratio), kThisProcessOnly);
  return fmt::format("{} [{}, {}]", format_ratio(*row.time_ratio), format_ratio(*row.time_ratio_low),
                     format_ratio(*row.time_ratio_high));
}

std::string format_date(std::int64_t unix_ns) {
  if (unix_ns == 0) return "-";
  const std::time_t seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string cell_label(const CellRecord& cell) {
  if (cell.phase == "prefill") return fmt::format("b{} pp{}", cell.batch, cell.length);
  return fmt::format("b{} {} @ d{}", cell.batch, cell.phase == "decode" ? "tg" : "gen", cell.length);
}

std::string setting_label(const CellRecord& cell) {
  const std::string fill = cell.fill == "random" ? "" : fmt::format(", {} fill", cell.fill);
  return fmt::format("{}, {}, {} thread{}, scope {}{}", cell.dtype, cell.device, cell.threads,
                     cell.threads == 1 ? "" : "s", cell.scope, fill);
}

std::string escape_html(std::string_view text) {
  return replace_each(text, [](char c, char) -> std::string_view {
    switch (c) {
      case '&': return "&amp;";
      case '<': return "&lt;";
      case '>': return "&gt;";
      case '"': return "&quot;";
      case '\'': return "&#39;";
      default: return {};
    }
  });
}

std::string escape_markdown(std::string_view text) {
  return replace_each(text, [](char c, char next) -> std::string_view {
    switch (c) {
      case '&': return "&amp;";
      case '<': return "&lt;";
      case '>': return "&gt;";
      case '|': return "\\|";
      case '\\': return "\\\\";
      case '`': return "\\`";
      case '*': return "\\*";
      case '_': return "\\_";
      case ']': return next == '(' || next == '[' || next == ':' ? "\\]" : std::string_view();  // else it ends no link
      case '\n':
      case '\r': return " ";
      default: return {};
    }
  });
}

std::string escape_csv(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  return '"' +
         replace_each(text, [](char c, char) { return c == '"' ? std::string_view("\"\"") : std::string_view(); }) +
         '"';
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

std::string wrap(std::string_view text, std::size_t width) {
  std::string result;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(" \n");
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (word.empty()) continue;
    if (column > 0 && column + 1 + display_width(word) > width) {
      result += '\n';
      column = 0;
    }
    if (column > 0) result += ' ';
    result += word;
    column += (column > 0 ? 1 : 0) + display_width(word);
  }
  return result;
}

}  // namespace decodelab
