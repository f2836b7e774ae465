// Formats numbers for people: four significant digits with the unit that fits.
#pragma once

#include <cstdint>
#include <string>

namespace decodelab {

inline constexpr double kSecondsOfAMinute = 60;
inline constexpr double kNsOfASecond = 1e9;

/// Returns four significant digits with the unit that fits: `812 ns`, `12.34 us`, `1.234 ms`, `1.234 s`.
std::string format_time(double ns);
/// Returns four significant digits in binary units: `512 B`, `1.500 KiB`, `3.250 GiB`.
std::string format_bytes(std::int64_t bytes);
/// Returns a share as per cent: 0.0213 is `2.1 %`.
std::string format_percent(double share);
/// Returns the time in UTC, `2026-01-31 12:34:56 UTC`; `-` for 0.
std::string format_date(std::int64_t unix_ns);

}  // namespace decodelab
