// Exports of several versions of nsys come in as rows that join, and what is no export is refused in one sentence.
#include <gtest/gtest.h>

#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"
#include "profiles/write/import_trace.h"
#include "tests/profiles/write/nsys_fixture.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::execute;

class ImportNsys : public ::testing::Test {
 protected:
  TraceEvents import() { return import_nsys(path_); }
  std::string refusal(const ImportLimits& limits = {}) {
    try {
      import_nsys(path_, limits);
    } catch (const ImportRefusal& error) {
      return error.what();
    }
    return "read";
  }
  const testing::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "t.sqlite";
};

TEST_F(ImportNsys, OperationsFindTheCallsOfTheirOwnProcessThoughCorrelationsRepeat) {
  testing::make_nsys_3_25(path_);
  const Trace trace = seal(import());
  ASSERT_EQ(trace.events().operations.size(), 5u);
  std::int64_t least = 1'000'000;
  for (const Flow& flow : trace.flows()) {
    const ApiCall& call = trace.events().api_calls[static_cast<std::size_t>(flow.api_row)];
    const DeviceOperation& row = trace.events().operations[static_cast<std::size_t>(flow.operation_row)];
    EXPECT_EQ(call.process, row.process);
    least = std::min(least, row.start_ns - call.start_ns);
  }
  EXPECT_EQ(trace.flows().size(), 4u);
  EXPECT_EQ(least, 150);
}

TEST_F(ImportNsys, ColumnsOfTheNewestSchemaArriveInTheirMembers) {
  testing::make_nsys_3_25(path_);
  const Trace trace = seal(import());
  const TraceSession& session = trace.events().session;
  EXPECT_EQ(session.source, "nsys 2026.2.1.210");
  EXPECT_EQ(session.unix_offset_ns, 1'790'000'000'000'000'000);
  EXPECT_EQ(session.zero_times, 1);
  EXPECT_EQ(session.process, 100);
  EXPECT_EQ(session.main_thread, 101);
  EXPECT_FALSE(session.graph_granularity);
  ASSERT_EQ(session.devices.size(), 1u);
  EXPECT_EQ(session.devices[0].multiprocessors, 132);
  const DeviceOperation& gemm = trace.events().operations[0];
  EXPECT_EQ(trace.text(gemm.name), "void gemm<float>()");
  EXPECT_EQ(gemm.grid, (std::array<std::int32_t, 3>{132, 1, 1}));
  EXPECT_EQ(gemm.dynamic_shared_bytes, 2048);
  EXPECT_EQ(trace.events().operations[1].graph_node_id, 51u);
  EXPECT_EQ(trace.events().operations[3].kind, DeviceOperationKind::copy);
  EXPECT_EQ(trace.events().operations[3].bytes, 4096);
  ASSERT_EQ(trace.events().waits.size(), 1u);
  EXPECT_EQ(trace.events().waits[0].thread, 101);
  ASSERT_EQ(trace.events().overheads.size(), 1u);
  EXPECT_EQ(trace.events().overheads[0].kind, OverheadKind::command_buffer_full);
}

TEST_F(ImportNsys, NvtxRangesBecomeStepsAndStages) {
  testing::make_nsys_3_25(path_);
  const Trace trace = seal(import());
  const TraceEvents& events = trace.events();
  ASSERT_EQ(events.spans.size(), 3u);
  EXPECT_EQ(events.spans[0].kind, SpanKind::step);
  EXPECT_EQ(events.spans[0].step, 12);
  EXPECT_EQ(events.spans[1].stage, Stage::attention);
  EXPECT_EQ(events.spans[1].step, 12);
  ASSERT_EQ(events.steps.size(), 2u);
  // By the call that launched it, which lies in the stage.
  EXPECT_EQ(events.operations[1].step, 12);
  EXPECT_EQ(events.operations[1].stage, Stage::attention);
}

TEST_F(ImportNsys, AnOlderShapeLacksColumnsAndIsReadAllTheSame) {
  testing::make_nsys_old(path_, 1);
  const Trace trace = seal(import());
  ASSERT_EQ(trace.events().operations.size(), 1u);
  EXPECT_EQ(trace.flows().size(), 1u);
  EXPECT_EQ(trace.text(trace.events().operations[0].name), "gemm");
  EXPECT_EQ(trace.events().operations[0].step, 5);
}

TEST_F(ImportNsys, KernelsThatDoNotSayWhoseTheyAreAreRefusedWhereThereAreTwoProcesses) {
  testing::make_nsys_old(path_, 2);
  EXPECT_EQ(
      refusal(),
      "t.sqlite has calls of 2 processes and kernels that do not say whose they are: their correlation ids cannot be "
      "matched.");
}

TEST_F(ImportNsys, ACaptureOfWholeGraphsSaysThatItKnowsNoKernels) {
  testing::make_nsys_graph_only(path_);
  const Trace trace = seal(import());
  EXPECT_TRUE(trace.events().session.graph_granularity);
  ASSERT_EQ(trace.events().operations.size(), 1u);
  EXPECT_EQ(trace.events().operations[0].kind, DeviceOperationKind::graph);
  EXPECT_EQ(trace.flows().size(), 1u);
}

TEST_F(ImportNsys, WhatIsNoExportIsRefusedInOneSentence) {
  execute(path_, "CREATE TABLE other (start INTEGER)");
  EXPECT_EQ(
      refusal(),
      "t.sqlite is a SQLite file, but no export of nsys: none of the tables of its CUDA or NVTX events is there.");
}

TEST_F(ImportNsys, ATableWithoutTimesIsRefused) {
  execute(path_, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)");
  EXPECT_EQ(refusal(),
            "t.sqlite has a table CUPTI_ACTIVITY_KIND_KERNEL without start and end, which no version of nsys writes.");
}

TEST_F(ImportNsys, TimesOfNoClockAreRefused) {
  execute(path_,
          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER); "
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (-3600000000000, 7)");
  EXPECT_EQ(refusal(), "t.sqlite has an event at -3600000000000 ns, which is no time of a clock.");
}

TEST_F(ImportNsys, TimesALittleBelowZeroAreMovedAndCounted) {
  execute(path_,
          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER); "
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (-5, 7), (8, 9)");
  const TraceEvents events = import();
  EXPECT_EQ(events.session.negative_times, 1);
  ASSERT_EQ(events.operations.size(), 2u);
  EXPECT_EQ(events.operations[0].start_ns, 1);
  EXPECT_EQ(events.operations[0].end_ns, 13);
  EXPECT_EQ(events.operations[1].start_ns, 14);
}

TEST_F(ImportNsys, NumbersThatNoMachineHasAreRefused) {
  execute(path_,
          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, streamId INTEGER); "
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 7, 99999999999)");
  EXPECT_EQ(refusal(), "t.sqlite says 99999999999 for streamId, which no machine has.");
}

TEST_F(ImportNsys, AViewThatNeverEndsIsNotRun) {
  execute(path_,
          "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS "
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i + 1 AS end FROM n");
  EXPECT_EQ(import().operations.size(), 0u);
}

TEST_F(ImportNsys, MoreEventsThanAllowedAreRefusedAndNotCut) {
  testing::make_nsys_3_25(path_);
  EXPECT_EQ(refusal({.most_events = 3}),
            "t.sqlite has more than 3 events, and a part of a trace would be taken for the whole: trace "
            "fewer steps, or raise the limit.");
}

TEST_F(ImportNsys, MoreTextThanAllowedIsRefused) {
  testing::make_nsys_3_25(path_);
  EXPECT_EQ(refusal({.most_text_bytes = 20}), "t.sqlite has more than 20 bytes of names.");
}

}  // namespace
}  // namespace decodelab
