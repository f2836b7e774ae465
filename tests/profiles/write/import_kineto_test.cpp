// Files of PyTorch's profiler come in as rows, and nothing in them is believed.
#include <gtest/gtest.h>
#include <zlib.h>

#include "profiles/trace/trace.h"
#include "profiles/write/import_trace.h"
#include "profiles/write/kineto_event.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

// As kineto writes it: a sync drawn on a device, an annotation's twin there, ts and dur with three decimals.
constexpr const char* kFile = R"json({"schemaVersion": 1,
"deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85000000000, "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
"record_shapes": 1, "distributedInfo": {"rank": 0, "nested": {"deep": [1, 2]}}, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1700000000000000000,
"traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 5, "tid": 5, "ts": 0.000, "dur": 100.000, "args": {"External id": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 5, "ts": 10.001, "dur": 20.500, "args": {"External id": 2, "Input Dims": [[1, 2], [3]]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 12.0, "dur": 5, "args": {"cbid": 211, "correlation": 77}},
{"ph": "s", "id": 77, "pid": 5, "tid": 5, "ts": 12.0, "cat": "ac2g", "name": "ac2g"},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20.125, "dur": 3.875, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 77, "registers per thread": 64, "shared memory": 4096, "grid": [132, 2, 1], "block": [128, 1, 1], "est. achieved occupancy %": 44}},
{"ph": "f", "id": 77, "pid": 0, "tid": 7, "ts": 20.125, "cat": "ac2g", "name": "ac2g", "bp": "e"},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 5, "tid": 5, "ts": 30, "dur": 10, "args": {"cbid": 131, "correlation": 78}},
{"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 31, "dur": 8, "args": {"cuda_sync_kind": "Stream Sync", "stream": 7, "correlation": 78}},
{"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#7", "pid": 0, "tid": 7, "ts": 20.125, "dur": 3.875, "args": {}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "pid": 0, "tid": 7, "ts": 26, "dur": 1, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 79, "bytes": 64}},
{"ph": "M", "name": "process_name", "pid": "Spans", "tid": 0, "ts": 0.0, "args": {"name": "python"}}
], "traceName": "x.json"})json";

class ImportKineto : public ::testing::Test {
 protected:
  std::string refusal(const std::string& content, const ImportLimits& limits = {}) {
    try {
      import_kineto(folder_.write("t.json", content), limits);
    } catch (const ImportRefusal& error) {
      return error.what();
    }
    return "read";
  }
  std::string refusal_of_event(const std::string& event) { return refusal(R"({"traceEvents":[)" + event + "]}"); }
  const testing::TemporaryFolder folder_;
};

TEST_F(ImportKineto, EventsBecomeRowsThatJoin) {
  const Trace trace = seal(import_kineto(folder_.write("t.json", kFile)));
  const TraceEvents& events = trace.events();
  EXPECT_EQ(events.session.source, "kineto");
  EXPECT_EQ(events.session.main_thread, 5);
  ASSERT_EQ(events.steps.size(), 1u);
  EXPECT_EQ(events.steps[0].index, 7);
  ASSERT_EQ(events.spans.size(), 2u);
  EXPECT_EQ(events.spans[1].start_ns, 1'700'000'000'000'010'001);
  EXPECT_EQ(events.spans[1].step, 7);
  ASSERT_EQ(events.operations.size(), 2u);
  EXPECT_EQ(events.operations[0].start_ns, 1'700'000'000'000'020'125);
  EXPECT_EQ(events.operations[0].end_ns, 1'700'000'000'000'024'000);
  EXPECT_EQ(events.operations[0].grid, (std::array<std::int32_t, 3>{132, 2, 1}));
  EXPECT_EQ(events.operations[0].registers, 64);
  EXPECT_EQ(events.operations[0].step, 7);
  EXPECT_EQ(events.operations[1].copy_kind, 2);
  EXPECT_EQ(trace.flows().size(), 1u);
  ASSERT_EQ(events.waits.size(), 1u);
  EXPECT_EQ(events.waits[0].thread, 5);
  EXPECT_EQ(events.session.devices.at(0).multiprocessors, 132);
}

TEST_F(ImportKineto, AListOfDevicesMayHoldWhatIsNone) {
  const Trace trace = seal(import_kineto(folder_.write(
      "t.json", R"({"deviceProperties": [3, ["id", 9], {"id": 0, "numSms": 132}, 5, [[7]]], "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 5, "tid": 5, "ts": 1, "dur": 2}]})")));
  ASSERT_EQ(trace.events().session.devices.size(), 1U);
  EXPECT_EQ(trace.events().session.devices[0].multiprocessors, 132);
}

TEST_F(ImportKineto, AGzippedFileIsTheSame) {
  const std::filesystem::path path = folder_ / "t.json.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzputs(file, kFile);
  gzclose(file);
  EXPECT_EQ(import_kineto(path).operations.size(), 2u);
}

TEST_F(ImportKineto, ChromesArrayOfEventsIsRead) {
  EXPECT_EQ(
      import_kineto(folder_.write("t.json", R"([{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":2,"ts":1,"dur":2}])"))
          .spans.size(),
      1u);
}

TEST_F(ImportKineto, MicrosecondsAreReadByTheirDigits) {
  EXPECT_EQ(micros_to_ns("1700000000000000.123"), 1'700'000'000'000'000'123);
  EXPECT_EQ(micros_to_ns("0.0005"), 1);
  EXPECT_EQ(micros_to_ns("-2.5"), -2'500);
  EXPECT_EQ(micros_to_ns("1.5e3"), 1'500'000);
  EXPECT_EQ(micros_to_ns("9223372036854775807"), std::nullopt);
  EXPECT_EQ(micros_to_ns("1e300"), std::nullopt);
  EXPECT_EQ(micros_to_ns(""), std::nullopt);
}

TEST_F(ImportKineto, WhatIsNoTraceIsRefusedInOneSentence) {
  EXPECT_EQ(refusal(R"({"traceEvents":[)"), "t.json is not JSON: byte 17 fits no value.");
  EXPECT_EQ(refusal("{}"), "t.json is JSON, but has no \"traceEvents\".");
  EXPECT_EQ(refusal("7"), "t.json is JSON, but has no \"traceEvents\".");
  EXPECT_EQ(refusal(std::string(1000, '[')), "t.json nests values more than 64 deep.");
}

TEST_F(ImportKineto, TimesAndNumbersThatNoMachineHasAreRefused) {
  EXPECT_EQ(refusal_of_event(R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":-2,"args":{}})"),
            "t.json has an event 'k' of category kernel whose ts and dur are no times.");
  EXPECT_EQ(refusal_of_event(R"({"ph":"X","cat":"kernel","name":"k","ts":1e300,"dur":2,"args":{}})"),
            "t.json has an event 'k' of category kernel whose ts and dur are no times.");
  EXPECT_EQ(refusal_of_event(R"({"ph":"X","cat":"kernel","name":"k","dur":2,"args":{}})"),
            "t.json has an event 'k' of category kernel whose ts and dur are no times.");
  EXPECT_EQ(refusal_of_event(R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2,"args":{"stream":-99999999999}})"),
            "t.json says -99999999999 for stream, which no machine has.");
  EXPECT_EQ(refusal_of_event(R"({"ph":"X","cat":"cpu_op","name":"k","ts":-3600000000,"dur":2})"),
            "t.json has an event at -3600000000000 ns, which is no time of a clock.");
}

TEST_F(ImportKineto, ACutGzipIsRefused) {
  const std::filesystem::path path = folder_ / "t.json.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzputs(file, kFile);
  gzclose(file);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 20);
  try {
    import_kineto(path, {.most_value_bytes = std::int64_t{1} << 22});
    FAIL() << "it was read";
  } catch (const ImportRefusal& error) {
    EXPECT_STREQ(error.what(), "t.json.gz is cut: its gzip stream has no end.");
  }
}

// 70 MB of one text in a small gzip.
TEST_F(ImportKineto, AValueThatWouldFillMemoryIsRefused) {
  const std::filesystem::path path = folder_ / "t.json.gz";
  gzFile file = gzopen(path.c_str(), "wb1");
  gzputs(file, R"({"traceEvents":[{"name":")");
  const std::string block(1 << 20, 'a');
  for (int i = 0; i < 5; ++i) {
    gzwrite(file, block.data(), static_cast<unsigned>(block.size()));
  }
  gzclose(file);
  try {
    import_kineto(path, {.most_value_bytes = std::int64_t{1} << 22});
    FAIL() << "it was read";
  } catch (const ImportRefusal& error) {
    EXPECT_STREQ(error.what(), "t.json.gz has a single value of more than 4194304 bytes.");
  }
}

TEST_F(ImportKineto, MoreEventsThanAllowedAreRefusedAndNotCut) {
  EXPECT_EQ(refusal(kFile, {.most_events = 2}),
            "t.json has more than 2 events, and a part of a trace would be taken for the whole: trace "
            "fewer steps, or raise the limit.");
}

}  // namespace
}  // namespace decodelab
