// Records built by hand, walked by the real cuptiActivityGetNextRecord, which needs no driver.
#ifdef DECODELAB_HAS_CUPTI

#include "profiles/collect/cupti_records.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "tests/profiles/collect/cupti_library.h"

namespace decodelab {
namespace {

constexpr std::int64_t kProcess = 4711;

/// A buffer as CUPTI fills it: records one behind the other.
class RecordBuffer {
 public:
  template <typename Record>
  void add(const Record& record) {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(&record);
    const std::size_t at = words_.size() * sizeof(std::uint64_t);
    static_assert(sizeof(Record) % sizeof(std::uint64_t) == 0);
    words_.resize(words_.size() + sizeof(Record) / sizeof(std::uint64_t));
    std::memcpy(reinterpret_cast<std::uint8_t*>(words_.data()) + at, begin, sizeof record);
  }
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(words_.data()); }
  std::size_t bytes() const { return words_.size() * sizeof(std::uint64_t); }

 private:
  std::vector<std::uint64_t> words_;  // Records lie at 8 bytes.
};

CUpti_ActivityKernel10 kernel(std::uint64_t start, std::uint64_t end, std::uint32_t correlation, const char* name) {
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.start = start;
  record.end = end;
  record.correlationId = correlation;
  record.streamId = 7;
  record.deviceId = 1;
  record.contextId = 2;
  record.gridX = 132;
  record.gridY = 2;
  record.gridZ = 1;
  record.blockX = 256;
  record.blockY = record.blockZ = 1;
  record.registersPerThread = 40;
  record.staticSharedMemory = 16;
  record.dynamicSharedMemory = 1024;
  record.graphId = 3;
  record.graphNodeId = 0x300000005;
  record.name = name;
  return record;
}

CUpti_ActivityAPI api_call(CUpti_ActivityKind kind, CUpti_CallbackId id, std::uint64_t start,
                           std::uint32_t correlation) {
  CUpti_ActivityAPI record{};
  record.kind = kind;
  record.cbid = id;
  record.start = start;
  record.end = start + 2000;
  record.processId = kProcess;
  record.threadId = 42;
  record.correlationId = correlation;
  return record;
}

class CuptiRecordsTest : public testing::Test {
 protected:
  void SetUp() override { functions_ = cupti_of_tests(); }

  TraceEvents read(RecordBuffer& buffer) {
    TraceEvents events;
    CuptiRecords records(functions_, events, kProcess);
    records.add(buffer.data(), buffer.bytes());
    records.finish();
    records_ = records.records();
    return events;
  }

  CuptiFunctions functions_;
  std::int64_t records_ = 0;
};

TEST_F(CuptiRecordsTest, KernelHasItsPlaceShapeAndDemangledName) {
  RecordBuffer buffer;
  buffer.add(kernel(5000, 9000, 11, "_ZN9decodelab4gemmEv"));
  buffer.add(kernel(9500, 9900, 12, "cutlass_kernel"));
  const TraceEvents events = read(buffer);
  ASSERT_EQ(events.operations.size(), 2U);
  const DeviceOperation& operation = events.operations[0];
  EXPECT_EQ(events.strings.text(operation.name), "decodelab::gemm()");
  EXPECT_EQ(operation.kind, DeviceOperationKind::kernel);
  EXPECT_EQ(operation.start_ns, 5000);
  EXPECT_EQ(operation.end_ns, 9000);
  EXPECT_EQ(operation.process, kProcess);
  EXPECT_EQ(operation.device, 1);
  EXPECT_EQ(operation.context, 2);
  EXPECT_EQ(operation.stream, 7);
  EXPECT_EQ(operation.correlation, 11U);
  EXPECT_EQ(operation.graph_id, 3U);
  EXPECT_EQ(operation.graph_node_id, 0x300000005U);
  EXPECT_EQ(operation.grid, (std::array<std::int32_t, 3>{132, 2, 1}));
  EXPECT_EQ(operation.block, (std::array<std::int32_t, 3>{256, 1, 1}));
  EXPECT_EQ(operation.registers, 40);
  EXPECT_EQ(operation.static_shared_bytes, 16);
  EXPECT_EQ(operation.dynamic_shared_bytes, 1024);
  EXPECT_EQ(events.strings.text(events.operations[1].name), "cutlass_kernel");
}

TEST_F(CuptiRecordsTest, CopiesAndSetsHaveTheirBytes) {
  RecordBuffer buffer;
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  copy.bytes = 4096;
  copy.start = 100;
  copy.end = 200;
  copy.correlationId = 5;
  buffer.add(copy);
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.bytes = 64;
  set.start = 300;
  set.end = 310;
  buffer.add(set);
  const TraceEvents events = read(buffer);
  ASSERT_EQ(events.operations.size(), 2U);
  EXPECT_EQ(events.operations[0].kind, DeviceOperationKind::copy);
  EXPECT_EQ(events.operations[0].copy_kind, 2);
  EXPECT_EQ(events.operations[0].bytes, 4096);
  EXPECT_EQ(events.operations[1].kind, DeviceOperationKind::set);
  EXPECT_EQ(events.operations[1].bytes, 64);
}

TEST_F(CuptiRecordsTest, CallsHaveTheNamesAndKindsThatToolsLookFor) {
  RecordBuffer buffer;
  const auto add = [&](CUpti_ActivityKind kind, CUpti_CallbackId id) { buffer.add(api_call(kind, id, 1000, id)); };
  add(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
  add(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000);
  add(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
  add(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
  add(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
  add(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
  add(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  add(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020);
  add(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent);  // Of the driver only launches are kept.
  add(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
  const TraceEvents events = read(buffer);
  const std::vector<std::pair<std::string, ApiKind>> expected{
      {"cudaLaunchKernel", ApiKind::launch},      {"cudaLaunchKernel", ApiKind::launch},
      {"cudaGraphLaunch", ApiKind::graph_launch}, {"cudaMemcpyAsync", ApiKind::copy},
      {"cudaMemsetAsync", ApiKind::set},          {"cudaStreamSynchronize", ApiKind::synchronize},
      {"cudaMalloc", ApiKind::allocate},          {"cudaGetDevice", ApiKind::other},
      {"cuLaunchKernelEx", ApiKind::launch}};
  ASSERT_EQ(events.api_calls.size(), expected.size());
  for (std::size_t call = 0; call < expected.size(); ++call) {
    EXPECT_EQ(events.strings.text(events.api_calls[call].name), expected[call].first);
    EXPECT_EQ(events.api_calls[call].kind, expected[call].second) << expected[call].first;
    EXPECT_EQ(events.api_calls[call].thread, 42);
    EXPECT_EQ(events.api_calls[call].process, kProcess);
  }
  EXPECT_FALSE(events.api_calls[0].driver);
  EXPECT_TRUE(events.api_calls.back().driver);
}

TEST_F(CuptiRecordsTest, AWaitHasTheThreadOfTheCallWithItsCorrelation) {
  RecordBuffer buffer;
  buffer.add(api_call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, 1000, 9));
  CUpti_ActivitySynchronization2 wait{};
  wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  wait.start = 1100;
  wait.end = 1900;
  wait.correlationId = 9;
  wait.streamId = 7;
  buffer.add(wait);
  const TraceEvents events = read(buffer);
  ASSERT_EQ(events.waits.size(), 1U);
  EXPECT_EQ(events.waits[0].kind, WaitKind::stream);
  EXPECT_EQ(events.waits[0].thread, 42);
  EXPECT_EQ(events.waits[0].stream, 7);
}

TEST_F(CuptiRecordsTest, OverheadsHaveTheirKinds) {
  const std::vector<std::pair<CUpti_ActivityOverheadKind, OverheadKind>> kinds{
      {CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER, OverheadKind::driver_compiler},
      {CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, OverheadKind::buffer_flush},
      {CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, OverheadKind::lazy_function_loading},
      {CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL, OverheadKind::command_buffer_full}};
  RecordBuffer buffer;
  for (const auto& [number, kind] : kinds) {
    CUpti_ActivityOverhead3 overhead{};
    overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    overhead.overheadKind = number;
    overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    overhead.objectId.pt.threadId = 42;
    overhead.start = 10;
    overhead.end = 20;
    buffer.add(overhead);
  }
  const TraceEvents events = read(buffer);
  ASSERT_EQ(events.overheads.size(), kinds.size());
  for (std::size_t row = 0; row < kinds.size(); ++row) {
    EXPECT_EQ(events.overheads[row].kind, kinds[row].second);
    EXPECT_EQ(events.overheads[row].thread, 42);
  }
}

TEST_F(CuptiRecordsTest, ExternalCorrelationGivesALaunchItsLayerAndStage) {
  RecordBuffer buffer;
  CUpti_ActivityExternalCorrelation correlation{};
  correlation.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  correlation.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
  correlation.externalId = correlation_of(4, Stage::mlp);
  correlation.correlationId = 11;
  buffer.add(correlation);
  correlation.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;  // torch's own, which is no place of ours.
  correlation.externalId = correlation_of(9, Stage::head);
  buffer.add(correlation);
  CUpti_ActivityKernel10 plain = kernel(5000, 9000, 11, "gemm");
  plain.graphId = 0;
  plain.graphNodeId = 0;
  buffer.add(plain);
  const TraceEvents events = read(buffer);
  ASSERT_EQ(events.operations.size(), 1U);
  EXPECT_EQ(events.operations[0].layer, 4);
  EXPECT_EQ(events.operations[0].stage, Stage::mlp);
}

TEST_F(CuptiRecordsTest, CountsStampsOfZeroAndKeepsInvertedOnes) {
  RecordBuffer buffer;
  buffer.add(kernel(0, 0, 1, "gemm"));
  buffer.add(kernel(10, 0, 2, "gemm"));
  buffer.add(kernel(30, 20, 3, "gemm"));
  const TraceEvents events = read(buffer);
  EXPECT_EQ(events.session.zero_times, 2);
  ASSERT_EQ(events.operations.size(), 1U);
  EXPECT_EQ(events.operations[0].end_ns - events.operations[0].start_ns, -10);
}

TEST_F(CuptiRecordsTest, CountsKindsThatItDoesNotKnowAndGoesOn) {
  RecordBuffer buffer;
  CUpti_ActivityCudaEvent2 event{};
  event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  buffer.add(event);
  buffer.add(kernel(10, 20, 1, "gemm"));
  const TraceEvents events = read(buffer);
  EXPECT_EQ(events.session.unknown_records, 1);
  EXPECT_EQ(events.operations.size(), 1U);
  EXPECT_EQ(records_, 2);
}

TEST_F(CuptiRecordsTest, RandomMixesLoseNothing) {
  std::mt19937 random(1);
  for (int pass = 0; pass < 200; ++pass) {
    RecordBuffer buffer;
    std::size_t kernels = 0;
    std::size_t calls = 0;
    std::size_t zero = 0;
    for (unsigned record = 0; record < random() % 200; ++record) {
      switch (random() % 3) {
        case 0:
          buffer.add(kernel(1 + record, 2 + record, record, "gemm"));
          ++kernels;
          break;
        case 1:
          buffer.add(api_call(CUPTI_ACTIVITY_KIND_RUNTIME, 211, 1 + record, record));
          ++calls;
          break;
        default:
          buffer.add(kernel(0, 0, record, "gemm"));
          ++zero;
          break;
      }
    }
    const TraceEvents events = read(buffer);
    ASSERT_EQ(events.operations.size(), kernels);
    ASSERT_EQ(events.api_calls.size(), calls);
    ASSERT_EQ(static_cast<std::size_t>(events.session.zero_times), zero);
    ASSERT_EQ(static_cast<std::size_t>(records_), kernels + calls + zero);
    ASSERT_EQ(events.session.dropped_records, 0);
  }
}

}  // namespace
}  // namespace decodelab

#endif
