// The session with CUPTI over a table of functions of the test's own: each refusal, the order of calls, nodes of
// graphs, lost buffers.
#ifdef DECODELAB_HAS_CUPTI

#include "profiles/collect/cupti.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "profiles/collect/cupti_buffers.h"
#include "profiles/collect/cupti_reasons.h"
#include "profiles/collect/thread_spans.h"
#include "tests/profiles/collect/cupti_library.h"

namespace decodelab {
namespace {

/// What the functions below were asked, and what they answer.
struct FakeCupti {
  CUptiResult subscribe_result = CUPTI_SUCCESS;
  CUptiResult enable_result = CUPTI_SUCCESS;
  std::vector<std::string> calls;
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  CUpti_BuffersCallbackRequestFunc requested = nullptr;
  CUpti_BuffersCallbackCompleteFunc completed = nullptr;
  std::int64_t timestamps_registered = 0;
  std::int64_t pushed = 0;
  std::int64_t popped = 0;
  std::size_t dropped = 0;
};
FakeCupti fake;

CUptiResult CUPTIAPI subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* user,
                               CUpti_SubscriberParams* parameters) {
  fake.calls.emplace_back("subscribe");
  fake.callback = callback;
  fake.user = user;
  if (fake.subscribe_result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    std::strncpy(parameters->oldSubscriberName, "CUPTI for Kineto", parameters->oldSubscriberSize - 1);
  }
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&fake);
  return fake.subscribe_result;
}
CUptiResult CUPTIAPI unsubscribe(CUpti_SubscriberHandle) {
  fake.calls.emplace_back("unsubscribe");
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI enable_callback(std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI set_thread_id_type(CUpti_ActivityThreadIdType) {
  fake.calls.emplace_back("thread ids");
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI set_attribute(CUpti_ActivityAttribute, size_t*, void*) {
  fake.calls.emplace_back("attribute");
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI register_timestamp(CUpti_TimestampCallbackFunc) {
  fake.calls.emplace_back("timestamp");
  ++fake.timestamps_registered;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI register_buffers(CUpti_BuffersCallbackRequestFunc requested,
                                      CUpti_BuffersCallbackCompleteFunc completed) {
  fake.calls.emplace_back("buffers");
  fake.requested = requested;
  fake.completed = completed;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI enable(CUpti_ActivityKind kind) {
  fake.calls.push_back("enable " + std::to_string(kind));
  return fake.enable_result;
}
CUptiResult CUPTIAPI disable(CUpti_ActivityKind kind) {
  fake.calls.push_back("disable " + std::to_string(kind));
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI enable_driver_api(CUpti_CallbackId, std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult CUPTIAPI flush_all(std::uint32_t) {
  fake.calls.emplace_back("flush");
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI dropped_records(CUcontext, std::uint32_t, size_t* dropped) {
  fake.calls.emplace_back("dropped");
  *dropped = fake.dropped;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI timestamp(std::uint64_t* time) {
  *time = static_cast<std::uint64_t>(trace_clock_ns());
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI push_correlation(CUpti_ExternalCorrelationKind, std::uint64_t) {
  ++fake.pushed;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI pop_correlation(CUpti_ExternalCorrelationKind, std::uint64_t*) {
  ++fake.popped;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI graph_node_id(CUgraphNode node, std::uint64_t* id) {
  *id = reinterpret_cast<std::uintptr_t>(node);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI graph_id(CUgraph graph, std::uint32_t* id) {
  *id = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(graph));
  return CUPTI_SUCCESS;
}

class CuptiTest : public testing::Test {
 protected:
  void SetUp() override {
    fake = {};
    // Names, texts and the walker are the library's own.
    functions_ = cupti_of_tests();
    functions_.subscribe = &subscribe;
    functions_.unsubscribe = &unsubscribe;
    functions_.enable_callback = &enable_callback;
    functions_.set_thread_id_type = &set_thread_id_type;
    functions_.set_attribute = &set_attribute;
    functions_.register_timestamp = &register_timestamp;
    functions_.register_buffers = &register_buffers;
    functions_.enable = &enable;
    functions_.disable = &disable;
    functions_.enable_driver_api = &enable_driver_api;
    functions_.flush_all = &flush_all;
    functions_.dropped_records = &dropped_records;
    functions_.timestamp = &timestamp;
    functions_.push_correlation = &push_correlation;
    functions_.pop_correlation = &pop_correlation;
    functions_.graph_node_id = &graph_node_id;
    functions_.graph_id = &graph_id;
  }

  static TraceEvents drained(Collector& collector) {
    collector.stop();
    TraceEvents events;
    collector.drain(events);
    return events;
  }

  static void node(CUpti_CallbackIdResource id, std::uintptr_t node, std::uintptr_t original, std::uintptr_t graph) {
    CUpti_GraphData data{};
    data.node = reinterpret_cast<CUgraphNode>(node);
    data.originalNode = reinterpret_cast<CUgraphNode>(original);
    data.graph = reinterpret_cast<CUgraph>(graph);
    CUpti_ResourceData resource{};
    resource.resourceDescriptor = &data;
    fake.callback(fake.user, CUPTI_CB_DOMAIN_RESOURCE, id, &resource);
  }

  static void call(CUpti_CallbackDomain domain, CUpti_CallbackId id, CUpti_ApiCallbackSite site) {
    CUpti_CallbackData data{};
    data.callbackSite = site;
    fake.callback(fake.user, domain, id, &data);
  }

  CuptiFunctions functions_;
};

TEST_F(CuptiTest, SaysThatThereIsNoDriver) {
  fake.subscribe_result = CUPTI_ERROR_UNKNOWN;
  const CuptiSession session(functions_);
  EXPECT_NE(session.why_not().find("999"), std::string::npos) << session.why_not();
  EXPECT_NE(session.why_not().find("no NVIDIA driver"), std::string::npos) << session.why_not();
  EXPECT_EQ(range_listener, nullptr);
}

TEST_F(CuptiTest, SaysWhoHoldsCuptiAlready) {
  fake.subscribe_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  const CuptiSession session(functions_);
  EXPECT_NE(session.why_not().find("39"), std::string::npos) << session.why_not();
  EXPECT_NE(session.why_not().find("another tool listens already"), std::string::npos) << session.why_not();
  EXPECT_NE(session.why_not().find("CUPTI for Kineto"), std::string::npos) << session.why_not();
}

TEST_F(CuptiTest, SaysThatAPermissionIsMissingAndCollectsNothing) {
  fake.enable_result = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  CuptiSession session(functions_);
  ASSERT_EQ(session.why_not(), "");
  const auto collector = session.collector();
  collector->start({});
  const TraceEvents events = drained(*collector);
  ASSERT_FALSE(events.session.collectors.empty());
  EXPECT_FALSE(events.session.collectors[0].on);
  EXPECT_NE(events.session.collectors[0].reason.find("35"), std::string::npos) << events.session.collectors[0].reason;
  EXPECT_NE(events.session.collectors[0].reason.find("NVreg_RestrictProfilingToAdminUsers"), std::string::npos);
}

TEST_F(CuptiTest, OnAMachineWithoutADriverTheRealLibraryGivesItsReason) {
  const CuptiFunctions real = cupti_of_tests();
  std::uint32_t version = 0;
  ASSERT_EQ(real.version(&version), CUPTI_SUCCESS);
  CuptiSession session(real);
  if (session.why_not().empty()) {
    GTEST_SKIP() << "this machine has a driver";
  }
  EXPECT_NE(session.why_not().find("no NVIDIA driver"), std::string::npos) << session.why_not();
}

TEST_F(CuptiTest, BringsUpInTheOrderThatGivesAllRecords) {
  CuptiSession session(functions_);
  std::vector<std::string> calls = fake.calls;
  std::erase(calls, "timestamp");  // Only the first session of the process registers it.
  EXPECT_EQ(calls, (std::vector<std::string>{"subscribe", "thread ids", "attribute", "buffers"}));
  fake.calls.clear();
  const auto collector = session.collector();
  collector->start({.tier = TraceTier::causes});
  EXPECT_EQ(std::ranges::count(fake.calls, "enable " + std::to_string(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)), 0);
  EXPECT_EQ(std::ranges::count(fake.calls, "enable " + std::to_string(CUPTI_ACTIVITY_KIND_RUNTIME)), 1);
  fake.calls.clear();
  collector->stop();
  ASSERT_GE(fake.calls.size(), 2U);
  EXPECT_EQ(fake.calls.back(), "dropped");
  EXPECT_EQ(fake.calls[fake.calls.size() - 2], "flush");
}

TEST_F(CuptiTest, TierOneAsksForNoCalls) {
  CuptiSession session(functions_);
  const auto collector = session.collector();
  collector->start({.tier = TraceTier::kernels});
  EXPECT_EQ(std::ranges::count(fake.calls, "enable " + std::to_string(CUPTI_ACTIVITY_KIND_RUNTIME)), 0);
  in_stage(Stage::mlp, [] {});
  EXPECT_EQ(fake.pushed, 0);
}

TEST_F(CuptiTest, RegistersTheClockOnceForAllSessions) {
  {
    const CuptiSession first(functions_);
  }
  {
    const CuptiSession second(functions_);
  }
  EXPECT_LE(fake.timestamps_registered, 1);
}

TEST_F(CuptiTest, NodesAreOfTheRangeThatCapturesThemAndClonesOfTheirOriginals) {
  CuptiSession session(functions_);
  {
    const LayerRange layer(5);
    in_stage(Stage::mlp, [] { node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 0x10, 0, 1); });
    node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 0x11, 0, 1);
  }
  std::thread([] { node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 0x12, 0, 1); }).join();
  node(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, 0x20, 0x10, 2);
  const auto collector = session.collector();
  collector->start({});
  const TraceEvents events = drained(*collector);
  ASSERT_EQ(events.nodes.size(), 4U);
  EXPECT_EQ(events.nodes[0].layer, 5);
  EXPECT_EQ(events.nodes[0].stage, Stage::mlp);
  EXPECT_EQ(events.nodes[1].layer, 5);
  EXPECT_EQ(events.nodes[1].stage, Stage::other);
  EXPECT_EQ(events.nodes[2].layer, kNoLayer) << "a node of another thread has no place";
  EXPECT_EQ(events.nodes[3].node_id, 0x20U);
  EXPECT_EQ(events.nodes[3].original_node_id, 0x10U);
  EXPECT_EQ(events.nodes[3].graph_id, 2U);
  EXPECT_EQ(events.nodes[3].layer, 5);
  EXPECT_EQ(events.nodes[3].stage, Stage::mlp);
}

TEST_F(CuptiTest, PushesAndPopsACorrelationForEachRangeOfTierTwo) {
  CuptiSession session(functions_);
  const auto collector = session.collector();
  in_stage(Stage::head, [] {});
  collector->start({.tier = TraceTier::causes});
  {
    const LayerRange layer(0);
    in_stage(Stage::mlp, [] {});
  }
  collector->stop();
  in_stage(Stage::head, [] {});
  EXPECT_EQ(fake.pushed, 2);
  EXPECT_EQ(fake.popped, 2);
}

TEST_F(CuptiTest, CountsALaunchOnceThoughTheDriverIsCalledInside) {
  CuptiSession session(functions_);
  EXPECT_FALSE(session.launches());
  const auto collector = session.collector();
  collector->start({});
  const auto nested = [](CUpti_CallbackId runtime, CUpti_CallbackId driver) {
    call(CUPTI_CB_DOMAIN_RUNTIME_API, runtime, CUPTI_API_ENTER);
    call(CUPTI_CB_DOMAIN_DRIVER_API, driver, CUPTI_API_ENTER);
    call(CUPTI_CB_DOMAIN_DRIVER_API, driver, CUPTI_API_EXIT);
    call(CUPTI_CB_DOMAIN_RUNTIME_API, runtime, CUPTI_API_EXIT);
  };
  nested(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  nested(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
  call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_API_ENTER);
  call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_API_EXIT);
  ASSERT_TRUE(session.launches());
  EXPECT_EQ(session.launches()->launches, 2);
  EXPECT_EQ(session.launches()->graph_launches, 1);
}

TEST_F(CuptiTest, ALaunchIntoAStreamThatIsCapturedIsNotCounted) {
  CuptiSession session(functions_);
  const auto collector = session.collector();
  collector->start({});
  const auto launch = [](bool captured) {
    call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_API_ENTER);
    if (captured) {
      node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 0x10, 0, 1);
    }
    call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_API_EXIT);
  };
  launch(true);
  launch(false);
  launch(true);
  node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 0x11, 0, 1);  // Added by hand, by no launch.
  EXPECT_EQ(session.launches()->launches, 1);
}

TEST_F(CuptiTest, TheTableOfFunctionsMayGoOnceTheSessionIsOpen) {
  auto table = std::make_unique<CuptiFunctions>(functions_);
  CuptiSession session(*table);
  *table = CuptiFunctions{};
  table.reset();
  const auto collector = session.collector();
  collector->start({.tier = TraceTier::causes});
  in_stage(Stage::mlp, [] {});
  EXPECT_EQ(fake.pushed, 1);
}

TEST_F(CuptiTest, RecordsOfCompletedBuffersBecomeRowsAndDropsAreCounted) {
  CuptiSession session(functions_);
  const auto collector = session.collector();
  collector->start({});
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.start = 10;
  kernel.end = 20;
  kernel.name = "gemm";
  // More buffers than the pool has: those that did not fit are lost, and counted.
  constexpr int kBuffersAsked = 20;
  constexpr int kPool = 16;
  std::vector<std::uint8_t*> buffers;
  for (int index = 0; index < kBuffersAsked; ++index) {
    std::size_t size = 0;
    std::size_t most = 1;
    buffers.emplace_back();
    fake.requested(&buffers.back(), &size, &most);
    ASSERT_NE(buffers.back(), nullptr);
    ASSERT_EQ(size, kCuptiBufferBytes);
    ASSERT_EQ(most, 0U);
    std::memcpy(buffers.back(), &kernel, sizeof kernel);
  }
  for (std::uint8_t* buffer : buffers) {
    fake.completed(nullptr, 0, buffer, kCuptiBufferBytes, sizeof kernel);
  }
  fake.dropped = 3;
  const TraceEvents events = drained(*collector);
  EXPECT_EQ(events.operations.size(), static_cast<std::size_t>(kPool));
  EXPECT_EQ(events.session.dropped_records, 3 + kBuffersAsked - kPool);
  EXPECT_EQ(events.session.clocks.size(), 2U);
  EXPECT_LE(events.session.clocks[0].before_ns, events.session.clocks[0].device_ns);
}

TEST_F(CuptiTest, GivesThePlaceOfTheListenerBack) {
  {
    const CuptiSession session(functions_);
  }
  EXPECT_EQ(range_listener, nullptr);
  EXPECT_EQ(fake.calls.back(), "unsubscribe");
}

}  // namespace
}  // namespace decodelab

#endif
