// NVTX without a tool of NVIDIA's: this program injects itself, and sees what nsys would.
#ifdef DECODELAB_HAS_NVTX

#include "profiles/collect/nvtx.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/collect/span_collector.h"
#include "tests/profiles/collect/nvtx_recorder.h"

// The place that NVTX looks at before it looks for a library: a strong symbol here, a weak null one in NVTX.
extern "C" {
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = &decodelab::testing::attach_recorder;
}

namespace decodelab {
namespace {

using testing::NvtxEvent;

class NvtxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::nvtx_told = [this](const NvtxEvent& event) { events_.push_back(event); };
  }
  void TearDown() override { testing::nvtx_told = nullptr; }

  std::vector<std::string> pushed() const {
    std::vector<std::string> texts;
    for (const NvtxEvent& event : events_) {
      if (event.push) {
        texts.push_back(event.text);
      }
    }
    return texts;
  }

  static void run_step(std::int64_t index) {
    const StepRange step(index);
    in_stage(Stage::embed, [] {});
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const LayerRange range(layer);
      in_stage(Stage::mlp, [] { in_stage(Stage::norm, [] {}); });
    }
  }

  std::vector<NvtxEvent> events_;
};

TEST_F(NvtxTest, SeesTheDomainRegisteredStringsAndTheStepAsPayload) {
  ASSERT_TRUE(NvtxRanges::tool_attached()) << NvtxRanges::why_not();
  NvtxRanges ranges;
  ranges.enter_window();
  run_step(7);
  ranges.leave_window();
  EXPECT_EQ(pushed(),
            (std::vector<std::string>{"window", "step", "embed", "layer 0", "mlp", "norm", "layer 1", "mlp", "norm"}));
  for (const NvtxEvent& event : events_) {
    EXPECT_EQ(event.domain, "decode");
    if (event.push) {
      EXPECT_TRUE(event.registered) << event.text << " is a string that nsys --nvtx-capture does not find";
      EXPECT_EQ(event.payload, event.text == "window" ? 0U : 7U) << event.text;
    }
  }
}

TEST_F(NvtxTest, PushesAndPopsNest) {
  const NvtxRanges ranges;
  run_step(0);
  std::int64_t depth = 0;
  std::int64_t deepest = 0;
  for (const NvtxEvent& event : events_) {
    depth += event.push ? 1 : -1;
    deepest = std::max(deepest, depth);
    ASSERT_GE(depth, 0);
  }
  EXPECT_EQ(depth, 0);
  EXPECT_EQ(deepest, 4) << "step, layer, mlp, norm";
}

TEST_F(NvtxTest, HasTheSpansOfTheTraceInTheirOrder) {
  const NvtxRanges ranges;
  SpanCollector collector;
  collector.start({});
  for (std::int64_t index = 0; index < 3; ++index) {
    run_step(index);
  }
  collector.stop();
  TraceEvents trace;
  collector.drain(trace);
  std::ranges::stable_sort(trace.spans, [](const HostSpan& a, const HostSpan& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  std::vector<std::string> spans;
  for (const HostSpan& span : trace.spans) {
    spans.push_back(trace.strings.text(span.name));
  }
  EXPECT_EQ(pushed(), spans);
}

TEST_F(NvtxTest, TellsNothingAfterItEnded) {
  {
    const NvtxRanges ranges;
  }
  run_step(0);
  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(range_listener, nullptr);
}

}  // namespace
}  // namespace decodelab

#endif
