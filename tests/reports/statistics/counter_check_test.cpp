// A cost that rises is caught by name, one that falls is a notice, and a row without a line is no pass.
#include "reports/statistics/counter_check.h"

#include <gtest/gtest.h>

#include "reports/store/flags.h"
#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::message_of;
using testing::sample_run;
using testing::SampleOptions;

RunData counted_run() {
  SampleOptions options;
  options.batches = {1};
  options.lengths = {64};
  options.arms = {{"causal"}, {"bigcode", 0.7}};
  options.with_failures = false;
  RunData data = sample_run(options);
  for (CellArmRecord& row : data.cell_arms) {
    row.counters = {{"allocations", 10 * row.cell_id + row.arm_id}, {"lm_head_rows", 1}, {"op.aten::cat", 4}};
  }
  return data;
}

TEST(CounterCheck, PassesARunThatCountsWhatWasAccepted) {
  const RunSummary summary = summarize(counted_run());
  const std::string lines = counter_lines(summary);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 4);
  EXPECT_TRUE(check_counters(lines, summary).empty());
}

TEST(CounterCheck, NamesTheCostThatRose) {
  RunData data = counted_run();
  const std::string lines = counter_lines(summarize(data));
  data.cell_arms[1].counters["op.aten::cat"] = 5;
  data.cell_arms[2].counters["op.aten::extra"] = 1;
  const auto findings = check_counters(lines, summarize(data));
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].outcome, CounterOutcome::regression);
  EXPECT_EQ(findings[0].arm, "bigcode");
  EXPECT_EQ(findings[0].words, "op.aten::cat rose from 4 to 5");
  EXPECT_EQ(findings[1].words, "op.aten::extra rose from 0 to 1");
}

TEST(CounterCheck, TakesALowerCostAsANoticeAndALowerProofAsARegression) {
  RunData data = counted_run();
  const std::string lines = counter_lines(summarize(data));
  data.cell_arms[0].counters["allocations"] -= 1;
  auto findings = check_counters(lines, summarize(data));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, CounterOutcome::improved);
  data.cell_arms[0].counters.erase("lm_head_rows");
  findings = check_counters(lines, summarize(data));
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].outcome, CounterOutcome::regression);
  EXPECT_TRUE(contains(findings[0].words, {"lm_head_rows must not change, and went from 1 to 0"}));
}

TEST(CounterCheck, TakesFewerGuessesThatStandAsARegressionAndMoreOfThemAsANotice) {
  RunData data = counted_run();
  Counters& counters = data.cell_arms[0].counters;
  counters["rounds"] = 8;
  counters["accepted_tokens"] = 3;
  const std::string lines = counter_lines(summarize(data));
  counters["accepted_tokens"] = 6;
  counters["rounds"] = 2;
  counters.erase("lm_head_rows");
  auto findings = check_counters(lines, summarize(data));
  ASSERT_EQ(findings.size(), 3U);
  for (const CounterFinding& finding : findings) {
    EXPECT_EQ(finding.outcome, CounterOutcome::improved) << finding.words;
  }
  counters["accepted_tokens"] = 2;
  findings = check_counters(lines, summarize(data));
  EXPECT_EQ(findings[0].outcome, CounterOutcome::regression);
  EXPECT_EQ(findings[0].words, "accepted_tokens fell from 3 to 2");
}

TEST(CounterCheck, IsInvalidWithoutALineOrWithACounterThatIsNotSteady) {
  RunData data = counted_run();
  const std::string lines = counter_lines(summarize(data));
  EXPECT_EQ(check_counters("", summarize(data)).size(), 4U);
  EXPECT_EQ(check_counters("", summarize(data)).front().outcome, CounterOutcome::invalid);
  data.run.build.libtorch = "9.9";
  EXPECT_EQ(check_counters(lines, summarize(data)).size(), 4U) << "counts belong to a libtorch";
  data = counted_run();
  data.cell_arms[3].flags = {std::string(kUnsteadyFlag) + "allocations"};
  const auto findings = check_counters(lines, summarize(data));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].counter, "allocations");
}

TEST(CounterCheck, AcceptsNewCountsAndKeepsLinesOfOtherRows) {
  RunData data = counted_run();
  const std::string before = counter_lines(summarize(data));
  RunData other = data;
  other.run.model.name = "another";
  const std::string both = accept_counters(before, summarize(other));
  EXPECT_EQ(std::ranges::count(both, '\n'), 8);
  data.cell_arms[0].counters["allocations"] = 1;
  const std::string after = accept_counters(both, summarize(data));
  EXPECT_EQ(std::ranges::count(after, '\n'), 8);
  EXPECT_TRUE(check_counters(after, summarize(data)).empty());
  EXPECT_TRUE(check_counters(after, summarize(other)).empty());
}

TEST(CounterCheck, RefusesTextThatIsNoSuchFile) {
  const RunSummary summary = summarize(counted_run());
  for (const char* text : {"x", "{}", "{\"counters\":3}", "[1]"}) {
    EXPECT_TRUE(contains(message_of([&] { check_counters(text, summary); }), {"line 1"})) << text;
  }
}

}  // namespace
}  // namespace decodelab
