// Traces made elsewhere: cut, moved, unmarked and of several devices, each has an account of what of it is whole.
#include "profiles/trace/view.h"

#include <cstdlib>

#include "tests/profiles/trace/checked.h"
#include "tests/profiles/trace/foreign_exports.h"

namespace decodelab {
namespace {

using testing::check_of;
using testing::expect_conserved;
using testing::ForeignExport;
using testing::Seen;

constexpr SyntheticShape kEager{.layers = 3, .steps = 6};
constexpr SyntheticShape kGraph{.layers = 3, .steps = 6, .graph = true};

/// The steps of the account are those of the truth by their numbers, to the nanosecond.
void expect_truth(const Seen& seen, const std::vector<SyntheticStep>& truth, const std::vector<std::int32_t>& steps) {
  expect_conserved(seen.account);
  ASSERT_EQ(seen.account.steps.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(seen.account.steps[i].index, steps[i]);
    const SyntheticStep& expected = truth.at(static_cast<std::size_t>(steps[i]));
    EXPECT_EQ(seen.account.steps[i].span_ns, expected.span_ns) << "step " << steps[i];
    EXPECT_EQ(seen.account.steps[i].busy_ns, expected.busy_ns) << "step " << steps[i];
    EXPECT_EQ(seen.account.steps[i].gap_ns, expected.gap_ns) << "step " << steps[i];
    EXPECT_EQ(seen.account.steps[i].launches, expected.launches) << "step " << steps[i];
  }
}

void cut_in_front(const ForeignExport& file, std::int64_t at_ns) {
  const std::string before = " WHERE start < " + std::to_string(at_ns) + ";";
  for (const char* table : {"KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "SYNCHRONIZATION", "OVERHEAD"}) {
    file.sql("DELETE FROM CUPTI_ACTIVITY_KIND_" + std::string(table) + before);
  }
  file.sql("DELETE FROM NVTX_EVENTS" + before);
}

/// Operations that had not ended are not there, calls that had begun are, and ranges stay open.
void cut_behind(const ForeignExport& file, std::int64_t at_ns) {
  const std::string at = std::to_string(at_ns);
  for (const char* table : {"KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION"}) {
    file.sql("DELETE FROM CUPTI_ACTIVITY_KIND_" + std::string(table) + " WHERE end > " + at);
  }
  file.sql("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE start > " + at);
  file.sql("DELETE FROM CUPTI_ACTIVITY_KIND_OVERHEAD WHERE start > " + at);
  file.sql("DELETE FROM NVTX_EVENTS WHERE start > " + at);
  file.sql("UPDATE NVTX_EVENTS SET end = NULL WHERE end > " + at);
}

/// Just before the n-th kernel starts: its launch lies before, and it does not.
std::int64_t before_kernel(const ForeignExport& file, int n) {
  return file.number("SELECT start - 1 FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start LIMIT 1 OFFSET " +
                     std::to_string(n));
}

TEST(ForeignTrace, MarkedAndWholeItHasTheAccountOfTheDecode) {
  for (const SyntheticShape& shape : {kEager, kGraph}) {
    const ForeignExport file(shape);
    const Seen seen = file.see();
    EXPECT_EQ(seen.quality.verdict, TraceVerdict::ok) << seen.quality.reason;
    EXPECT_EQ(seen.trace.events().session.steps_from, "the trace's own step ranges");
    expect_truth(seen, file.truth(), {0, 1, 2, 3, 4, 5});
  }
}

TEST(ForeignTrace, CutInFrontItIsPartialAndWholeStepsAreAccountedFor) {
  const ForeignExport file(kEager);
  cut_in_front(file, before_kernel(file, 22));  // 16 kernels a step, and a copy: the second step.
  const Seen seen = file.see();
  EXPECT_EQ(seen.quality.verdict, TraceVerdict::partial) << seen.quality.reason;
  EXPECT_GE(seen.trace.events().session.launched_before, 1);
  EXPECT_NE(check_of(seen.quality, "I19").evidence.find("launched before the capture"), std::string::npos);
  EXPECT_NE(seen.quality.believe.find("4 of 4 steps"), std::string::npos) << seen.quality.believe;
  expect_truth(seen, file.truth(), {2, 3, 4, 5});
}

TEST(ForeignTrace, CutBehindItIsPartialAndWholeStepsAreAccountedFor) {
  const ForeignExport file(kEager);
  cut_behind(file, before_kernel(file, 16 * 4 + 6));
  const Seen seen = file.see();
  EXPECT_EQ(seen.quality.verdict, TraceVerdict::partial) << seen.quality.reason;
  EXPECT_GE(seen.trace.events().session.outlasting, 1);
  EXPECT_GE(seen.trace.events().session.open_ranges, 1);
  expect_truth(seen, file.truth(), {0, 1, 2, 3});
}

TEST(ForeignTrace, AStepWhoseOperationsOutlastTheCaptureIsLeftOut) {
  const ForeignExport file(kEager);
  // The device stops being recorded in the middle of step 4, the host goes on.
  file.sql("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE end > " + std::to_string(before_kernel(file, 16 * 4 + 6)));
  file.sql("DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE start > (SELECT max(end) FROM CUPTI_ACTIVITY_KIND_KERNEL)");
  const Seen seen = file.see();
  EXPECT_EQ(seen.quality.verdict, TraceVerdict::partial) << seen.quality.reason;
  for (const std::size_t step : {4U, 5U}) {
    EXPECT_EQ(seen.trace.events().steps[step].excluded_reason, "its operations outlast the capture");
  }
  expect_truth(seen, file.truth(), {0, 1, 2, 3});
}

TEST(ForeignTrace, ThatBeginsBeforeTimeZeroIsMovedAndOtherwiseTheSame) {
  const ForeignExport file(kEager);
  const std::int64_t first = file.number("SELECT min(start) FROM NVTX_EVENTS");
  for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
                            "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                            "CUPTI_ACTIVITY_KIND_OVERHEAD", "NVTX_EVENTS"}) {
    const std::string moved = std::to_string(first + 1500);
    file.sql(std::string("UPDATE ") + table + " SET start = start - " + moved + ", end = end - " + moved);
  }
  const Seen seen = file.see();
  EXPECT_EQ(seen.quality.verdict, TraceVerdict::ok) << seen.quality.reason;
  EXPECT_GE(seen.trace.events().session.negative_times, 1);
  expect_truth(seen, file.truth(), {0, 1, 2, 3, 4, 5});
}

TEST(ForeignTrace, EachProcessAndDeviceHasItsOwnAccount) {
  const ForeignExport file(kEager, 100, 0);
  const ForeignExport other({.layers = 3, .steps = 6, .seed = 5}, 300, 1);
  file.add(other);
  const std::vector<TraceView> both{{.process = 100, .device = 0}, {.process = 300, .device = 1}};
  EXPECT_EQ(file.views(), both);
  expect_truth(file.see({}, 0), file.truth(), {0, 1, 2, 3, 4, 5});
  expect_truth(file.see({}, 1), other.truth(), {0, 1, 2, 3, 4, 5});
  expect_truth(file.see({.device = 1}), other.truth(), {0, 1, 2, 3, 4, 5});
  expect_truth(file.see({.process = 100}), file.truth(), {0, 1, 2, 3, 4, 5});
  try {
    file.views({.device = 7});
    FAIL() << "it was found";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "--device: the trace does not have it; it has process 100, GPU 0; process 300, GPU 1");
  }
}

TEST(ForeignTrace, OneProcessOnTwoDevicesMissesNoOperationOfEither) {
  const ForeignExport file(kEager);
  // The copies of every step are on another device.
  file.sql("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET deviceId = 1");
  ASSERT_EQ(file.views().size(), 2U);
  for (std::size_t place : {0, 1}) {
    const Seen seen = file.see({}, place);
    EXPECT_NE(seen.quality.verdict, TraceVerdict::broken) << seen.quality.reason;
    EXPECT_EQ(seen.trace.events().session.outlasting, 0);
    expect_conserved(seen.account);
  }
}

TEST(ForeignTrace, UnmarkedItsWholeWindowIsOneStep) {
  const ForeignExport file(kEager);
  file.sql("DELETE FROM NVTX_EVENTS");
  const Seen seen = file.see();
  EXPECT_EQ(seen.quality.verdict, TraceVerdict::ok) << seen.quality.reason;
  EXPECT_EQ(seen.trace.events().session.steps_from, "the whole window, since nothing in it marks steps");
  expect_conserved(seen.account);
  ASSERT_EQ(seen.account.steps.size(), 1U);
  std::int64_t busy_ns = 0;
  for (const SyntheticStep& step : file.truth()) {
    busy_ns += step.busy_ns;
  }
  EXPECT_EQ(seen.account.steps[0].busy_ns, busy_ns);
  EXPECT_EQ(seen.account.steps[0].gap_ns[static_cast<std::size_t>(GapCause::edge)], 0);
}

TEST(ForeignTrace, UnmarkedAndCutItsOperationsOfBeforeAreCountedAndQueued) {
  const ForeignExport file({.layers = 3, .steps = 6, .causes = {GapCause::dependency}});
  file.sql("DELETE FROM NVTX_EVENTS");
  // The host is ahead: much was launched before the first call that is left.
  file.sql("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE start < " + std::to_string(before_kernel(file, 4)));
  const Seen seen = file.see();
  EXPECT_EQ(seen.quality.verdict, TraceVerdict::partial) << seen.quality.reason;
  EXPECT_GT(seen.trace.events().session.launched_before, 2);
  expect_conserved(seen.account);
  std::int64_t calls = 0;
  for (const OperatorCost& cost : seen.account.kernels) {
    calls += cost.calls;
  }
  EXPECT_EQ(calls, static_cast<std::int64_t>(seen.trace.events().operations.size()));
}

TEST(ForeignTrace, UnmarkedGraphsAreDividedByTheirLaunches) {
  const ForeignExport file(kGraph);
  file.sql("DELETE FROM NVTX_EVENTS");
  const Seen seen = file.see();
  EXPECT_EQ(seen.quality.verdict, TraceVerdict::ok) << seen.quality.reason;
  EXPECT_EQ(seen.trace.events().session.steps_from, "CUDA graph launches, each to the next");
  EXPECT_EQ(seen.account.steps.size(), 5U);
  expect_conserved(seen.account);
}

TEST(ForeignTrace, OfWholeGraphsItIsPartialAndSaysNothingOfKernels) {
  const ForeignExport file(kGraph);
  file.sql(
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, contextId, streamId, correlationId, "
      "globalPid, "
      "graphId) SELECT min(start), max(end), deviceId, contextId, streamId, correlationId, globalPid, graphId FROM "
      "CUPTI_ACTIVITY_KIND_KERNEL WHERE graphId IS NOT NULL GROUP BY correlationId;"
      "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE graphId IS NOT NULL;"
      "ALTER TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE DROP COLUMN nameId;");
  const Seen seen = file.see();
  EXPECT_EQ(seen.quality.verdict, TraceVerdict::partial) << seen.quality.reason;
  EXPECT_EQ(seen.quality.believe.find("kernels"), std::string::npos) << seen.quality.believe;
  EXPECT_NE(seen.quality.believe.find("replays"), std::string::npos) << seen.quality.believe;
  EXPECT_EQ(seen.account.steps.size(), 6U);
  expect_conserved(seen.account);
}

TEST(ForeignTrace, StepsAreTheRangesThatWereAskedFor) {
  const ForeignExport file(kEager);
  const Seen seen = file.see({.step_range = "^layer$"});
  EXPECT_EQ(seen.trace.events().session.steps_from, "ranges that fit '^layer$'");
  EXPECT_EQ(seen.account.steps.size(), 18U);
  expect_conserved(seen.account);
  try {
    file.see({.step_range = "^epoch"});
    FAIL() << "it was found";
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_TRUE(
        what.starts_with("--step-range: no range of this process fits '^epoch'; those that cover most time are 'step' "
                         "(6 times, median "))
        << what;
  }
  EXPECT_THROW(file.see({.step_range = "("}), std::invalid_argument);
}

TEST(ForeignTrace, TwoWindowsAddUpToTheWhole) {
  const ForeignExport file(kEager);
  file.sql("DELETE FROM NVTX_EVENTS");
  const Seen whole = file.see();
  const TraceSession& session = whole.trace.events().session;
  const std::int64_t length_ns = session.capture_end_ns - session.capture_start_ns;
  const Seen first = file.see({.window = TimeInterval{.start_ns = 0, .end_ns = length_ns / 3}});
  const Seen second = file.see({.window = TimeInterval{.start_ns = length_ns / 3, .end_ns = length_ns}});
  for (const Seen* seen : {&first, &second}) {
    EXPECT_NE(seen->trace.events().session.steps_from.find("that was asked for"), std::string::npos);
    expect_conserved(seen->account);
  }
  EXPECT_EQ(first.account.steps.at(0).busy_ns + second.account.steps.at(0).busy_ns, whole.account.steps.at(0).busy_ns);
  EXPECT_THROW(file.see({.window = TimeInterval{.start_ns = length_ns * 2, .end_ns = length_ns * 3}}),
               std::invalid_argument);
}

TEST(ForeignTrace, AWindowKeepsTheStepsInsideOfIt) {
  const ForeignExport file(kEager);
  const Seen whole = file.see();
  const std::vector<Step>& steps = whole.trace.events().steps;
  const std::int64_t origin_ns = whole.trace.events().session.capture_start_ns;
  const Seen seen = file.see(
      {.window = TimeInterval{.start_ns = steps[1].start_ns - origin_ns, .end_ns = steps[3].end_ns - origin_ns}});
  expect_truth(seen, file.truth(), {1, 2, 3});
}

TEST(ForeignTrace, WhatIsMissingInsideIsBroken) {
  const ForeignExport kernel(kEager);
  kernel.sql("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid = 40");
  const Seen without_kernel = kernel.see();
  EXPECT_EQ(without_kernel.quality.verdict, TraceVerdict::broken);
  EXPECT_NE(without_kernel.quality.reason.find("no operation"), std::string::npos) << without_kernel.quality.reason;
  const ForeignExport call(kEager);
  call.sql(
      "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId = "
      "(SELECT correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid = 40)");
  const Seen without_call = call.see();
  EXPECT_EQ(without_call.quality.verdict, TraceVerdict::broken);
  EXPECT_NE(without_call.quality.reason.find("no launch in its process"), std::string::npos);
}

TEST(ForeignTrace, WrittenAsSqliteItHasTheSameAccount) {
  const ForeignExport file(kEager);
  cut_in_front(file, before_kernel(file, 22));
  const Seen seen = file.see();
  const testing::TemporaryFolder folder;
  for (const char* name : {"t.sqlite", "t.json"}) {
    write_trace(seen.trace, seen.quality, folder / name);
    const TraceEvents events = import_trace(folder / name);
    const Trace again = seal(view_events(events, views_of(events, {}).at(0), {}));
    const TraceQuality quality = verify(again);
    EXPECT_EQ(quality.verdict, TraceVerdict::partial) << name << quality.reason;
    const Attribution account = attribute(again, quality);
    ASSERT_EQ(account.steps.size(), seen.account.steps.size()) << name;
    for (std::size_t i = 0; i < account.steps.size(); ++i) {
      EXPECT_EQ(account.steps[i].gap_ns, seen.account.steps[i].gap_ns) << name;
    }
  }
}

TEST(ForeignTrace, ARealExportIsConserved) {
  const char* path = std::getenv("DECODELAB_NSYS_EXPORT");
  if (path == nullptr) {
    GTEST_SKIP() << "DECODELAB_NSYS_EXPORT names no export of nsys";
  }
  const TraceEvents events = import_trace(path);
  for (const TraceView& view : views_of(events, {})) {
    const Trace trace = seal(view_events(events, view, {}));
    const TraceQuality quality = verify(trace);
    EXPECT_NE(quality.verdict, TraceVerdict::broken) << to_string(view) << ": " << quality.reason;
    expect_conserved(attribute(trace, quality));
  }
}

}  // namespace
}  // namespace decodelab
