// Numbers, labels and escapes as people read them: units that fit, cells as llama-bench users name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reports/statistics/summary.h"

namespace decodelab {

/// Four significant digits with the unit that fits: `812 ns`, `12.34 us`, `1.234 ms`, `1.234 s`.
std::string format_time(double ns);
/// Four significant digits in binary units: `512 B`, `1.500 KiB`, `3.250 GiB`.
std::string format_bytes(std::int64_t bytes);
/// A share as per cent: 0.0213 is `2.1 %`.
std::string format_percent(double share);
/// An effect that a run could have seen, as per cent; `none` where not even a tenfold one could be told from noise.
std::string format_detectable(double share);
/// `0.7123`: four digits behind the point, since an effect of 0.1 % is worth telling; `over 1000` above that, and
/// `under 0.001` below, where an interval of very few launches has no meaning but its width.
std::string format_ratio(double ratio);
/// `0.7123 [0.7051, 0.7196]`, or the ratio and `this process only` where there is no interval.
std::string format_ratio(const SummaryRow& row);
/// UTC, `2026-01-31 12:34:56 UTC`; `-` for 0.
std::string format_date(std::int64_t unix_ns);

/// `b4 pp512`, `b4 tg @ d4096` (decode with 4096 keys held at the first timed step), `b4 gen @ d4096`.
std::string cell_label(const CellRecord& cell);
/// What all rows of a table must share, apart from batch and length: `bf16, cpu, 8 threads, scope step`.
std::string setting_label(const CellRecord& cell);

/// Safe between tags and in double-quoted attributes.
std::string escape_html(std::string_view text);
/// Safe in a cell of a Markdown table and in running text: no tag, link, emphasis or column break.
std::string escape_markdown(std::string_view text);
/// A field of RFC 4180.
std::string escape_csv(std::string_view text);

/// Columns that a terminal uses for UTF-8 text: code points, not bytes.
std::size_t display_width(std::string_view text);
/// Breaks text at spaces into lines of at most `width` columns; a longer word stands alone.
std::string wrap(std::string_view text, std::size_t width);

}  // namespace decodelab
