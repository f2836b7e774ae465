// Ranges, layers, steps, operators and allocations as spans, of one thread and of several.
#include "profiles/collect/span_collector.h"

#include <algorithm>
#include <map>
#include <thread>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TraceEvents drained(SpanCollector& collector) {
  collector.stop();
  TraceEvents events;
  collector.drain(events);
  std::ranges::sort(events.spans, [](const HostSpan& a, const HostSpan& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  return events;
}

std::vector<std::string> names(const TraceEvents& events) {
  std::vector<std::string> names;
  for (const HostSpan& span : events.spans) {
    names.push_back(events.strings.text(span.name));
  }
  return names;
}

/// What else listens, as StepCounters does.
class Counting final : public RangeListener {
 public:
  void enter(Stage) override { ++entered; }
  void leave() override { ++left; }
  void add(Amount, std::int64_t value) override { amount += value; }
  int entered = 0;
  int left = 0;
  std::int64_t amount = 0;
};

TEST(SpanCollector, RecordsStepsLayersAndStagesWithTheirPlaces) {
  SpanCollector collector;
  collector.start({});
  {
    const StepRange step(7);
    in_stage(Stage::embed, [] {});
    for (int layer = 0; layer < 2; ++layer) {
      const LayerRange range(layer);
      const Range mlp(Stage::mlp);
      in_stage(Stage::norm, [] {});
    }
    in_stage(Stage::head, [] {});
  }
  in_stage(Stage::host, [] {});
  const TraceEvents events = drained(collector);
  EXPECT_EQ(names(events), (std::vector<std::string>{"step", "embed", "layer 0", "mlp", "norm", "layer 1", "mlp",
                                                     "norm", "head", "host"}));
  EXPECT_EQ(events.spans[4].layer, 0);
  EXPECT_EQ(events.spans[4].stage, Stage::norm);
  EXPECT_EQ(events.spans[7].layer, 1);
  EXPECT_EQ(events.spans[8].layer, kNoLayer);
  EXPECT_EQ(events.spans[8].step, 7);
  EXPECT_EQ(events.spans[9].step, kNoStep);
  EXPECT_EQ(events.session.dropped_records, 0);
  for (const HostSpan& span : events.spans) {
    EXPECT_GE(span.end_ns, span.start_ns);
  }
}

TEST(SpanCollector, GivesAllocationsToTheInnermostSpan) {
  SpanCollector collector;
  collector.start({});
  {
    const Range stage(Stage::attention);
    collector.main_thread()->allocated(100);
    collector.main_thread()->enter_operator("aten::bmm");
    collector.main_thread()->allocated(20);
    collector.main_thread()->allocated(3);
    collector.main_thread()->leave_operator();
  }
  const TraceEvents events = drained(collector);
  ASSERT_EQ(names(events), (std::vector<std::string>{"attention", "aten::bmm"}));
  EXPECT_EQ(events.spans[0].allocations, 1);
  EXPECT_EQ(events.spans[0].allocated_bytes, 100);
  EXPECT_EQ(events.spans[1].allocations, 2);
  EXPECT_EQ(events.spans[1].allocated_bytes, 23);
  EXPECT_EQ(events.spans[1].stage, Stage::attention);
  EXPECT_EQ(events.spans[1].kind, SpanKind::operator_call);
}

TEST(SpanCollector, LeavesTheEndOfASpanEmptyThatWasOpenWhenItStopped) {
  SpanCollector collector;
  collector.start({});
  range_listener->enter(Stage::mlp);
  const TraceEvents events = drained(collector);
  ASSERT_EQ(events.spans.size(), 1U);
  EXPECT_EQ(events.spans[0].end_ns, 0);
}

TEST(SpanCollector, CountsExactlyWhatFoundNoRoom) {
  SpanCollector collector(16);
  collector.start({});
  for (int span = 0; span < 100; ++span) {
    in_stage(Stage::mlp, [] {});
  }
  const TraceEvents events = drained(collector);
  EXPECT_EQ(events.spans.size(), 16U);
  EXPECT_EQ(events.session.dropped_records, 84);
}

TEST(SpanCollector, CountsSpansThatNestTooDeep) {
  SpanCollector collector;
  collector.start({});
  ThreadSpans& spans = *collector.main_thread();
  for (int depth = 0; depth < 70; ++depth) {
    spans.enter_operator("aten::view");
  }
  for (int depth = 0; depth < 70; ++depth) {
    spans.leave_operator();
  }
  const TraceEvents events = drained(collector);
  EXPECT_EQ(events.spans.size(), 64U);
  EXPECT_EQ(events.session.dropped_records, 6);
}

TEST(SpanCollector, KeepsNoMoreThanTheConfigurationAllows) {
  SpanCollector collector(1 << 16);
  collector.start({.most_events = 32});
  EXPECT_EQ(collector.main_thread()->ring().capacity(), 32U);
}

TEST(SpanCollector, TellsTheListenerWhosePlaceItTookAndGivesThePlaceBack) {
  Counting counting;
  range_listener = &counting;
  SpanCollector collector;
  collector.start({});
  in_stage(Stage::mlp, [] { count_amount(Amount::graph_launches, 5); });
  EXPECT_EQ(collector.main_thread()->amount(Amount::graph_launches), 5);
  drained(collector);
  EXPECT_EQ(range_listener, &counting);
  range_listener = nullptr;
  EXPECT_EQ(counting.entered, 1);
  EXPECT_EQ(counting.left, 1);
  EXPECT_EQ(counting.amount, 5);
}

TEST(SpanCollector, StartsAgainWithNothingOfTheLastTime) {
  SpanCollector collector(4);
  collector.start({});
  for (int span = 0; span < 6; ++span) {
    in_stage(Stage::mlp, [] {});
  }
  EXPECT_EQ(drained(collector).session.dropped_records, 2);
  collector.start({});
  in_stage(Stage::head, [] {});
  const TraceEvents events = drained(collector);
  EXPECT_EQ(names(events), std::vector<std::string>{"head"});
  EXPECT_EQ(events.session.dropped_records, 0);
}

TEST(SpanCollector, RecordsSeveralThreadsEachInItsOwnRing) {
  constexpr int kThreads = 4;
  constexpr int kSpans = 1000;
  SpanCollector collector(2 * kSpans);
  collector.start({});
  std::vector<std::thread> threads;
  {
    const StepRange step(3);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&collector] {
        const SpanCollector::Attachment attachment(collector);
        for (int span = 0; span < kSpans; ++span) {
          in_stage(Stage::attention, [] {});
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  const TraceEvents events = drained(collector);
  std::map<std::int64_t, std::int64_t> by_thread;
  for (const HostSpan& span : events.spans) {
    ++by_thread[span.thread];
    EXPECT_EQ(span.step, 3);
  }
  EXPECT_EQ(by_thread.size(), 1U + kThreads);
  EXPECT_EQ(events.spans.size(), 1U + kThreads * kSpans);
  EXPECT_EQ(events.session.dropped_records, 0);
}

TEST(SpanCollector, NamesALayerThatAppearsForTheFirstTimeInLaterSteps) {
  SpanCollector collector;
  collector.start({});
  for (std::int64_t layer : {0, 1, 0}) {
    const LayerRange range(layer);
  }
  EXPECT_EQ(names(drained(collector)), (std::vector<std::string>{"layer 0", "layer 1", "layer 0"}));
}

}  // namespace
}  // namespace decodelab
