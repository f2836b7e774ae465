// Ranges have the device's time that was launched in them, and a trace of others is a sentence, tables and short
// findings.
#include "profiles/trace/ranges.h"

#include <sstream>

#include "base/table.h"
#include "profiles/trace/find_steps.h"
#include "profiles/trace/text.h"
#include "profiles/trace/words.h"
#include "tests/profiles/trace/foreign_exports.h"

namespace decodelab {
namespace {

using testing::ForeignExport;
using testing::Seen;

const RangeCost* cost_of(const std::vector<RangeCost>& costs, const std::string& name) {
  for (const RangeCost& cost : costs) {
    if (cost.name == name) {
      return &cost;
    }
  }
  return nullptr;
}

TEST(Ranges, HaveWhatWasLaunchedInThemAndInThoseInside) {
  const ForeignExport file({.layers = 3, .steps = 6});
  const Seen seen = file.see();
  const std::vector<RangeCost> costs = range_costs(seen.trace);
  const RangeCost* layer = cost_of(costs, "layer");
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(layer->count, 6 * 3);
  EXPECT_EQ(layer->operations, 6 * 3 * 5);
  // By hand: operations whose launch lies in a range of that name.
  std::int64_t expected_ns = 0;
  const TraceEvents& events = seen.trace.events();
  for (const DeviceOperation& row : events.operations) {
    const ApiCall& launch = events.api_calls.at(static_cast<std::size_t>(row.api_row));
    for (const HostSpan& span : events.spans) {
      const bool inside = span.start_ns <= launch.start_ns && launch.start_ns < span.end_ns;
      if (inside && seen.trace.text(span.name) == "layer") {
        expected_ns += row.end_ns - row.start_ns;
      }
    }
  }
  EXPECT_EQ(layer->device_ns, expected_ns);
}

TEST(Ranges, OfStepsThatAreLeftOutCountForNothing) {
  const ForeignExport file({.layers = 3, .steps = 6});
  const Seen whole = file.see();
  const Step& second = whole.trace.events().steps.at(1);
  const std::int64_t origin_ns = whole.trace.events().session.capture_start_ns;
  const Seen seen =
      file.see({.window = TimeInterval{.start_ns = second.start_ns - origin_ns, .end_ns = second.end_ns - origin_ns}});
  const std::vector<RangeCost> costs = range_costs(seen.trace);
  ASSERT_NE(cost_of(costs, "layer"), nullptr);
  EXPECT_EQ(cost_of(costs, "layer")->count, 3);
}

TEST(Ranges, CandidatesAreThoseThatCoverMostTime) {
  const ForeignExport file({.layers = 3, .steps = 6});
  const Seen seen = file.see({.step_range = "^layer$"});
  const std::vector<RangeCandidate> candidates = step_candidates(seen.trace.events(), 2);
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].name, "step");
  EXPECT_EQ(candidates[0].count, 6);
  EXPECT_GE(candidates[0].total_ns, candidates[1].total_ns);
}

TEST(ForeignText, BeginsWithASentenceAndHasFindingsOfTwoLines) {
  const ForeignExport file({.layers = 3, .steps = 6});
  file.sql("DELETE FROM NVTX_EVENTS WHERE uint64Value IS NOT NULL");
  file.sql("UPDATE StringIds SET value = 'void at::native::' || value || '<" + std::string(400, 'x') +
           ">(int)' WHERE value LIKE '%kernel%'");
  file.sql(
      "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId IN (SELECT correlationId FROM "
      "CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid BETWEEN 30 AND 40)");
  const Seen broken = file.see();
  ASSERT_EQ(broken.quality.verdict, TraceVerdict::broken);
  std::istringstream lines(explain_text(broken.quality));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "The trace cannot be believed.");
  int in_finding = 0;
  while (std::getline(lines, line)) {
    EXPECT_LE(line.size(), kTableWidth) << line;
    in_finding = line.starts_with(" ") ? in_finding + 1 : 1;
    EXPECT_LE(in_finding, 2) << line;
    EXPECT_EQ(line.find("xxxx"), std::string::npos) << "names are short";
  }
}

TEST(ForeignText, OfAnUnmarkedTraceOffersRangesAndNamesKernelsShortly) {
  const ForeignExport file({.layers = 3, .steps = 6});
  file.sql(
      "UPDATE NVTX_EVENTS SET textId = (SELECT min(id) FROM StringIds WHERE value = 'layer') WHERE textId IN "
      "(SELECT id FROM StringIds WHERE value = 'step')");
  file.sql("UPDATE StringIds SET value = 'void at::native::' || value || '<float>(int)' WHERE value LIKE '%kernel%'");
  const Seen seen = file.see();
  EXPECT_TRUE(seen.trace.events().session.steps_by_time);
  const std::string text = trace_text(seen.trace, seen.quality, seen.account);
  EXPECT_TRUE(text.starts_with("The GPU was busy for ")) << text;
  for (const char* part : {"steps: the whole window", "ranges for --step-range", "at::native::", "kernel_0<...>"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
  }
}

}  // namespace
}  // namespace decodelab
