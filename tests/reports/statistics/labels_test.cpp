// Units fit, labels read as llama-bench's, and text from outside stays text.
#include "reports/statistics/labels.h"

#include <gtest/gtest.h>

#include "base/escape.h"
#include "base/text.h"
#include "base/units.h"

namespace decodelab {
namespace {

TEST(Format, ChoosesTheUnitThatFits) {
  EXPECT_EQ(format_time(812), "812 ns");
  EXPECT_EQ(format_time(12'344), "12.34 us");
  EXPECT_EQ(format_time(1'234'000), "1.234 ms");
  EXPECT_EQ(format_time(999'999'999), "1.000 s");
  EXPECT_EQ(format_time(123.4e9), "123.4 s");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.500 KiB");
  EXPECT_EQ(format_bytes(3'489'660'928), "3.250 GiB");
  EXPECT_EQ(format_percent(0.0213), "2.1 %");
  EXPECT_EQ(format_detectable(0.0213), "2.1 %");
  EXPECT_EQ(format_detectable(8.99), "899.0 %");
  EXPECT_EQ(format_detectable(9.01), "none");
  EXPECT_EQ(format_ratio(0.71234), "0.7123");
  EXPECT_EQ(format_ratio(1e9), "over 1000");
  EXPECT_EQ(format_ratio(1e-9), "under 0.001");
  EXPECT_EQ(format_ratio(0.81623, Interval{0.78512, 0.84891}), "0.816 [0.785, 0.849]");
  EXPECT_EQ(format_ratio(0.81623, Interval{0.81531, 0.81715}), "0.8162 [0.8153, 0.8172]");
  EXPECT_EQ(format_ratio(0.81623, Interval{0.4, 2.5}), "0.82 [0.40, 2.50]");
  EXPECT_EQ(format_ratio(0.81623, std::nullopt), "0.82 this process only");
  EXPECT_EQ(format_ratio(1, Interval{1e-9, 1e9}), "1.00 [under 0.001, over 1000]");
  EXPECT_EQ(format_change(0.81623, Interval{0.78512, 0.84891}), "18 % less");
  EXPECT_EQ(format_change(0.81623, Interval{0.6, 0.99}), "18 % less");
  EXPECT_EQ(format_change(1.0042, Interval{1.0031, 1.0053}), "0.4 % more");
  EXPECT_EQ(format_change(2.5, Interval{2.4, 2.6}), "2.5 times");
  EXPECT_EQ(format_date(1'760'000'000'000'000'000), "2025-10-09 08:53:20 UTC");
  EXPECT_EQ(format_date(0), "-");
}

TEST(Format, LabelsCellsAsLlamaBenchDoes) {
  CellRecord cell{.phase = Phase::prefill, .batch = 4, .length = 512, .dtype = "bf16", .device = "cpu", .threads = 8};
  EXPECT_EQ(cell_label(cell), "b4 pp512");
  EXPECT_EQ(setting_label(cell), "bf16, cpu, 8 threads, scope step");
  cell.phase = Phase::decode;
  cell.length = 4096;
  EXPECT_EQ(cell_label(cell), "b4 tg @ d4096");
  cell.fill = "generated";
  cell.threads = 1;
  EXPECT_EQ(setting_label(cell), "bf16, cpu, 1 thread, scope step, generated fill");
}

TEST(Format, EscapesForEachPlace) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
  EXPECT_EQ(escape_markdown("a|b<c>[x](y) *_`\n"), "a\\|b&lt;c&gt;[x\\](y) \\*\\_\\` ");
  EXPECT_EQ(escape_markdown("0.7 [0.6, 0.8]"), "0.7 [0.6, 0.8]");
  EXPECT_EQ(escape_csv("plain"), "plain");
  EXPECT_EQ(escape_csv("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
}

TEST(Format, CountsCodePointsAndBreaksAtSpaces) {
  EXPECT_EQ(display_width("\xc3\xa9t\xc3\xa9"), 3U);
  EXPECT_EQ(wrap("one two three four", 9), "one two\nthree\nfour");
  EXPECT_EQ(wrap("unbreakable", 4), "unbreakable");
}

}  // namespace
}  // namespace decodelab
