// Sealing puts rows in order and joins them, whatever order they were collected in.
#include <algorithm>
#include <chrono>
#include <random>

#include <gtest/gtest.h>

#include "profiles/trace/trace.h"
#include "tests/profiles/trace/checked.h"

namespace decodelab {
namespace {

HostSpan span(std::int64_t start_ns, std::int64_t end_ns, SpanKind kind = SpanKind::other, std::int64_t thread = 1) {
  return {.start_ns = start_ns, .end_ns = end_ns, .thread = thread, .kind = kind};
}

DeviceOperation operation(std::int64_t start_ns, std::int64_t end_ns, std::uint32_t correlation = 0,
                          std::int32_t stream = 7) {
  return {.start_ns = start_ns, .end_ns = end_ns, .process = 1, .stream = stream, .correlation = correlation};
}

ApiCall call(std::int64_t start_ns, std::uint32_t correlation, ApiKind kind = ApiKind::launch) {
  return {.start_ns = start_ns,
          .end_ns = start_ns + 10,
          .process = 1,
          .thread = 1,
          .correlation = correlation,
          .kind = kind};
}

std::vector<int> depths(const Trace& trace) {
  std::vector<int> depths;
  for (const HostSpan& row : trace.events().spans) {
    depths.push_back(row.depth);
  }
  return depths;
}

TEST(TraceStrings, KeepTheirIdsWhenTheyAreCopiedAndMoved) {
  TraceStrings first;
  EXPECT_EQ(first.id(""), 0U);
  const StringId qkv = first.id("qkv");
  EXPECT_EQ(first.id("qkv"), qkv);
  TraceStrings second = first;
  first = TraceStrings();
  EXPECT_EQ(second.id("qkv"), qkv);
  EXPECT_EQ(second.id("mlp"), qkv + 1);
  const TraceStrings third = std::move(second);
  EXPECT_EQ(third.text(qkv), "qkv");
  EXPECT_EQ(third.size(), 3U);
  EXPECT_THROW(third.text(17), std::out_of_range);
}

TEST(Seal, GivesTheSameTraceForEveryOrderOfRows) {
  const TraceEvents made = synthetic_trace({.layers = 3, .kernels_per_layer = 6, .graph = true}).events;
  const Trace expected = seal(made);
  std::mt19937_64 random(5);
  TraceEvents shuffled = made;
  std::shuffle(shuffled.spans.begin(), shuffled.spans.end(), random);
  std::shuffle(shuffled.api_calls.begin(), shuffled.api_calls.end(), random);
  std::shuffle(shuffled.operations.begin(), shuffled.operations.end(), random);
  std::shuffle(shuffled.steps.begin(), shuffled.steps.end(), random);
  std::shuffle(shuffled.nodes.begin(), shuffled.nodes.end(), random);
  const Trace trace = seal(shuffled);
  ASSERT_EQ(trace.events().operations.size(), expected.events().operations.size());
  for (std::size_t i = 0; i < expected.events().operations.size(); ++i) {
    const DeviceOperation& row = trace.events().operations[i];
    const DeviceOperation& other = expected.events().operations[i];
    EXPECT_EQ(row.start_ns, other.start_ns);
    EXPECT_EQ(row.api_row, other.api_row);
    EXPECT_EQ(row.step, other.step);
    EXPECT_EQ(row.layer, other.layer);
    EXPECT_EQ(row.stage, other.stage);
  }
  EXPECT_EQ(depths(trace), depths(expected));
  EXPECT_EQ(trace.flows().size(), expected.events().operations.size());
}

TEST(Seal, CountsDepthPerThread) {
  TraceEvents events;
  events.spans = {span(30, 40),  span(10, 100), span(20, 50), span(50, 60), span(15, 90, SpanKind::other, 2),
                  span(100, 110)};
  // In order: 10, 15 of the other thread, 20, 30, 50, 100; a span that begins where another ends is beside it.
  EXPECT_EQ(depths(seal(events)), (std::vector<int>{0, 0, 1, 2, 1, 0}));
}

TEST(Seal, PutsTheOuterSpanFirstWhenBothBeginTogether) {
  TraceEvents events;
  events.spans = {span(10, 20, SpanKind::operator_call), span(10, 20, SpanKind::step), span(10, 50, SpanKind::other)};
  const Trace trace = seal(events);
  EXPECT_EQ(depths(trace), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(trace.events().spans[1].kind, SpanKind::step);
}

TEST(Seal, AnOpenSpanIsAroundNothing) {
  TraceEvents events;
  events.spans = {span(10, 100), span(20, 0, SpanKind::stage), span(30, 40)};
  EXPECT_EQ(depths(seal(events)), (std::vector<int>{0, 1, 1}));
}

TEST(Seal, SpansTakeWhatTheyDoNotSayFromTheSpanAroundThem) {
  TraceEvents events;
  events.steps = {{.index = 4, .start_ns = 5, .end_ns = 200}};
  HostSpan stage = span(10, 100, SpanKind::stage);
  stage.stage = Stage::mlp;
  stage.layer = 3;
  events.spans = {stage, span(20, 30, SpanKind::operator_call), span(150, 160), span(300, 310)};
  const Trace trace = seal(events);
  const std::vector<HostSpan>& spans = trace.events().spans;
  EXPECT_EQ(spans[0].step, 4);  // From the times of the step.
  EXPECT_EQ(spans[1].step, 4);
  EXPECT_EQ(spans[1].layer, 3);
  EXPECT_EQ(spans[1].stage, Stage::mlp);
  EXPECT_EQ(spans[2].step, 4);
  EXPECT_EQ(spans[2].layer, kNoLayer);
  EXPECT_EQ(spans[3].step, kNoStep);
}

TEST(Seal, AnOperationIsOfTheStepThatLaunchedItWheneverItRuns) {
  TraceEvents events;
  events.steps = {{.index = 0, .start_ns = 100, .end_ns = 200}, {.index = 1, .start_ns = 200, .end_ns = 300}};
  events.api_calls = {call(150, 1), call(250, 2)};
  events.operations = {operation(220, 240, 1), operation(400, 500, 2)};
  const Trace trace = seal(events);
  EXPECT_EQ(trace.events().operations[0].step, 0);
  EXPECT_EQ(trace.events().operations[1].step, 1);
  EXPECT_EQ(trace.events().steps[0].device_start_ns, 220);
  EXPECT_EQ(trace.events().steps[1].device_end_ns, 500);
}

TEST(Seal, LaunchesOfTheRuntimeAndTheDriverWithOneCorrelationAreTheRuntimes) {
  TraceEvents events;
  ApiCall inner = call(102, 1);
  inner.end_ns = 105;
  inner.driver = true;
  ApiCall at_once = call(200, 2);
  at_once.driver = true;
  events.api_calls = {inner, call(100, 1), at_once, call(200, 2)};
  events.operations = {operation(120, 130, 1), operation(220, 230, 2)};
  const Trace trace = seal(events);
  for (const DeviceOperation& row : trace.events().operations) {
    EXPECT_FALSE(trace.events().api_calls.at(static_cast<std::size_t>(row.api_row)).driver);
  }
}

TEST(Seal, ACorrelationOfAnotherProcessAloneIsNoLaunch) {
  TraceEvents events;
  events.api_calls = {call(100, 5)};
  events.api_calls[0].process = 2;
  events.operations = {operation(120, 130, 5)};
  EXPECT_EQ(seal(events).flows().size(), 0U);
}

TEST(Seal, AKernelIsNotLaunchedByAWaitOrACopy) {
  for (const ApiKind kind : {ApiKind::synchronize, ApiKind::copy, ApiKind::set, ApiKind::allocate}) {
    TraceEvents events;
    events.api_calls = {call(100, 1, kind)};
    events.operations = {operation(120, 130, 1)};
    const Trace trace = seal(events);
    EXPECT_EQ(trace.events().operations[0].api_row, kNoRow);
    EXPECT_TRUE(trace.flows().empty());
  }
}

TEST(Seal, AClonedNodeIsItsOriginalUnlessItSaysMore) {
  TraceEvents events;
  events.nodes = {{.graph_id = 1, .node_id = 10, .layer = 2, .stage = Stage::qkv},
                  {.graph_id = 5, .node_id = 20, .original_node_id = 10},
                  {.graph_id = 6, .node_id = 30, .original_node_id = 20},
                  {.graph_id = 6, .node_id = 31, .original_node_id = 20, .layer = 9, .stage = Stage::mlp},
                  {.graph_id = 6, .node_id = 32, .original_node_id = 32}};
  for (const std::uint64_t node : {30, 31, 32}) {
    DeviceOperation row = operation(100 + static_cast<std::int64_t>(node), 200);
    row.graph_id = 6;
    row.graph_node_id = node;
    events.operations.push_back(row);
  }
  const Trace trace = seal(events);
  EXPECT_EQ(trace.events().operations[0].stage, Stage::qkv);
  EXPECT_EQ(trace.events().operations[0].layer, 2);
  EXPECT_EQ(trace.events().operations[1].stage, Stage::mlp);
  EXPECT_EQ(trace.events().operations[1].layer, 9);
  EXPECT_EQ(trace.events().operations[2].stage, Stage::other);  // A clone of itself, and no endless search.
}

TEST(Seal, OverlapsOfOneStreamLieInTheLowestFreeLanes) {
  TraceEvents events;
  events.operations = {operation(10, 50), operation(20, 30), operation(25, 60),
                       operation(35, 40), operation(50, 70), operation(20, 90, 0, 8)};
  const Trace trace = seal(events);
  std::vector<int> lanes;
  for (const DeviceOperation& row : trace.events().operations) {
    if (row.stream == 7) {
      lanes.push_back(row.lane);
    }
  }
  EXPECT_EQ(lanes, (std::vector<int>{0, 1, 2, 1, 0}));
}

TEST(Seal, WithoutCallsTheCountsOfTheStepsDealOutTheLaunches) {
  const SyntheticShape shape{.layers = 2, .steps = 5, .graph = true};
  const Trace with_calls = seal(synthetic_trace(shape).events);
  const Trace without = seal(synthetic_trace(shape, TraceTier::kernels).events);
  for (std::size_t i = 0; i < with_calls.events().operations.size(); ++i) {
    EXPECT_EQ(without.events().operations[i].step, with_calls.events().operations[i].step);
    EXPECT_EQ(without.events().operations[i].api_row, kNoRow);
  }
}

TEST(Seal, CountsThatDoNotAddUpDealOutNothing) {
  TraceEvents events = synthetic_trace({}, TraceTier::kernels).events;
  events.operations.pop_back();
  const Trace trace = seal(events);
  for (const DeviceOperation& row : trace.events().operations) {
    EXPECT_EQ(row.step, kNoStep);
  }
}

TEST(Seal, StepsThatTheWindowCutsSaySo) {
  TraceEvents events;
  events.session.window_start_ns = 100;
  events.session.window_end_ns = 400;
  events.steps = {{.index = 0, .start_ns = 90, .end_ns = 200},
                  {.index = 1, .start_ns = 200, .end_ns = 300},
                  {.index = 2, .start_ns = 300, .end_ns = 350},
                  {.index = 3, .start_ns = 350, .end_ns = 0},
                  {.index = 4, .start_ns = 360, .end_ns = 450, .excluded_reason = "warm-up"}};
  events.api_calls = {call(310, 1)};
  events.operations = {operation(390, 401, 1)};
  const Trace trace = seal(events);
  const std::vector<Step>& steps = trace.events().steps;
  EXPECT_EQ(steps[0].excluded_reason, "cut by the start of the window");
  EXPECT_EQ(steps[1].excluded_reason, "");
  EXPECT_EQ(steps[2].excluded_reason, "cut by the end of the window");  // Its kernel ends later.
  EXPECT_EQ(steps[3].excluded_reason, "its end was not recorded");
  EXPECT_EQ(steps[4].excluded_reason, "warm-up");
}

TEST(Seal, AMillionEventsTakeSecondsNotMinutes) {
  TraceEvents events = synthetic_trace({.layers = 40, .kernels_per_layer = 12, .steps = 440}).events;
  ASSERT_GT(events.spans.size() + events.api_calls.size() + events.operations.size(), 900'000U);
  std::mt19937_64 random(5);
  std::shuffle(events.spans.begin(), events.spans.end(), random);
  std::shuffle(events.operations.begin(), events.operations.end(), random);
  const auto begin = std::chrono::steady_clock::now();
  const TraceQuality quality = verify(seal(std::move(events)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_EQ(quality.verdict, TraceVerdict::ok) << quality.reason;
}

TEST(Seal, SealsItsOwnResultToTheSame) {
  const Trace once = seal(synthetic_trace({.graph = true}, TraceTier::kernels).events);
  const Trace twice = seal(once.events());
  ASSERT_EQ(twice.events().operations.size(), once.events().operations.size());
  for (std::size_t i = 0; i < once.events().operations.size(); ++i) {
    EXPECT_EQ(twice.events().operations[i].step, once.events().operations[i].step);
    EXPECT_EQ(twice.events().operations[i].stage, once.events().operations[i].stage);
  }
}

}  // namespace
}  // namespace decodelab
