// Formatting of times, bytes, shares and dates.
#include "base/units.h"

#include <array>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

namespace decodelab {
namespace {

struct Unit {
  double size;
  const char* name;
};

// Returns four significant digits, never in the form 1.234e+04.
std::string significant(double value) {
  const double magnitude = std::abs(value);
  return fmt::format("{:.{}f}", value, magnitude < 9.9995 ? 3 : magnitude < 99.995 ? 2 : magnitude < 999.95 ? 1 : 0);
}

template <std::size_t N>
const Unit& fitting(const std::array<Unit, N>& units, double value) {
  // 0.99995 of a unit is printed as 1.000 of it.
  for (const Unit& unit : units) {
    if (std::abs(value) >= unit.size * 0.99995) {
      return unit;
    }
  }
  return units.back();
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

std::string format_date(std::int64_t unix_ns) {
  if (unix_ns == 0) {
    return "-";
  }
  const std::time_t seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace decodelab
