// Operators as spans: nested, in the order of time, as many as the counters say, and without any effect on what is
// decoded.
#include "bench/measure/torch_trace.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "bench/measure/engine_trace.h"
#include "bench/measure/torch_counters.h"
#include "bench/plan/arm.h"
#include "engine/engine.h"
#include "tests/engine/test_model.h"

namespace decodelab {
namespace {

std::shared_ptr<const Model> small() { return decodelab::testing::small_model(decodelab::testing::small_config()); }

/// Decode steps of a small model, greedy.
class Decoding {
 public:
  explicit Decoding(const std::string& arm)
      : engine_(small(), bind_arm(parse_arm(arm), reference_plan())),
        session_(engine_, {.batch_size = 2, .max_tokens = 16, .details = {}, .sampling = {}}) {
    session_.prefill(std::vector<std::vector<std::int64_t>>{{1, 2, 3}, {4, 5}});
  }
  std::vector<std::int64_t> step() { return session_.decode().token_ids; }

 private:
  Engine engine_;
  Session session_;
};

struct Recorded {
  TraceEvents events;
  std::vector<std::vector<std::int64_t>> tokens;
};

Recorded record(const std::string& arm, TraceTier tier, std::int64_t steps) {
  Decoding decoding(arm);
  SpanCollector spans;
  OperatorCollector operators(spans, "cpu");
  spans.start({.tier = tier});
  operators.start({.tier = tier});
  Recorded recorded;
  for (std::int64_t index = 0; index < steps; ++index) {
    const StepRange range(index);
    recorded.tokens.push_back(decoding.step());
  }
  operators.stop();
  spans.stop();
  spans.drain(recorded.events);
  operators.drain(recorded.events);
  return recorded;
}

constexpr std::int64_t kRecordedSteps = 4;

TEST(TorchTrace, OperatorsAreAsManyAsTheCountersSayAndSoAreAllocations) {
  for (const char* arm : {"causal", "bigcode", "native"}) {
    const Recorded recorded = record(arm, TraceTier::kernels, kRecordedSteps);
    Counters counters;
    {
      Decoding decoding(arm);
      StepCounters counting("cpu");
      for (std::int64_t index = 0; index < kRecordedSteps; ++index) {
        decoding.step();
      }
      counters = counting.counters();
    }
    std::map<std::string, std::int64_t> operators;
    std::int64_t allocations = 0;
    std::int64_t bytes = 0;
    for (const HostSpan& span : recorded.events.spans) {
      if (span.kind == SpanKind::operator_call) {
        ++operators["op." + recorded.events.strings.text(span.name)];
      }
      allocations += span.allocations;
      bytes += span.allocated_bytes;
    }
    std::int64_t total = 0;
    for (const auto& [name, count] : operators) {
      EXPECT_EQ(count, counters[name]) << arm << ": " << name;
      total += count;
    }
    EXPECT_EQ(total, counters["operators"]) << arm;
    EXPECT_EQ(allocations, counters["allocations"]) << arm;
    EXPECT_EQ(bytes, counters["allocated_bytes"]) << arm;
    EXPECT_EQ(recorded.events.session.dropped_records, 0) << arm;
  }
}

TEST(TorchTrace, SpansNestAndHaveTheStepThatTheyRanIn) {
  for (const TraceTier tier : {TraceTier::kernels, TraceTier::causes}) {
    Recorded recorded = record("bigcode", tier, kRecordedSteps);
    std::vector<HostSpan>& spans = recorded.events.spans;
    std::ranges::stable_sort(spans, [](const HostSpan& a, const HostSpan& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    std::vector<const HostSpan*> open;
    std::size_t deepest = 0;
    for (const HostSpan& span : spans) {
      ASSERT_GE(span.end_ns, span.start_ns);
      while (!open.empty() && open.back()->end_ns <= span.start_ns) {
        open.pop_back();
      }
      if (!open.empty()) {
        EXPECT_LE(span.end_ns, open.back()->end_ns) << recorded.events.strings.text(span.name);
        EXPECT_EQ(span.step, open.front()->step);
      }
      open.push_back(&span);
      deepest = std::max(deepest, open.size());
      EXPECT_GE(span.step, 0);
      EXPECT_LT(span.step, kRecordedSteps);
    }
    EXPECT_GE(deepest, 4U) << "a step has layers, those have stages, and those have operators";
  }
}

TEST(TorchTrace, TierTwoAddsTheOperatorsInsideOfOperators) {
  const auto count = [](TraceTier tier) {
    const Recorded recorded = record("causal", tier, 1);
    return std::ranges::count(recorded.events.spans, SpanKind::operator_call, &HostSpan::kind);
  };
  EXPECT_GT(count(TraceTier::causes), count(TraceTier::kernels));
}

TEST(TorchTrace, TokensAreTheSameWithAndWithout) {
  for (const char* arm : {"causal", "native"}) {
    Decoding plain(arm);
    std::vector<std::vector<std::int64_t>> tokens;
    for (std::int64_t index = 0; index < kRecordedSteps; ++index) {
      tokens.push_back(plain.step());
    }
    EXPECT_EQ(record(arm, TraceTier::causes, kRecordedSteps).tokens, tokens) << arm;
  }
}

TEST(TorchTrace, LeavesNothingBehind) {
  record("causal", TraceTier::causes, 1);
  EXPECT_EQ(range_listener, nullptr);
  SpanCollector spans;
  spans.start({});
  Decoding("causal").step();
  spans.stop();
  TraceEvents events;
  spans.drain(events);
  EXPECT_EQ(std::ranges::count(events.spans, SpanKind::operator_call, &HostSpan::kind), 0);
}

/// What the trace pass gives for a small cell.
TracedCell traced_cell(const Engine& engine, const char* arm, const TraceRequest& request) {
  const CellRecord cell{
      .phase = Phase::decode, .batch = 2, .length = 8, .dtype = "fp32", .device = "cpu", .threads = 1};
  return trace_cell(engine, parse_arm(arm), CellInput{}, cell, request);
}

TEST(TracePass, StagesAndResidualAreTheStepAndTheTimerAgrees) {
  const Engine engine(small(), bind_arm(parse_arm("bigcode"), reference_plan()));
  const TracedCell traced = traced_cell(engine, "bigcode", {.steps = 4, .pairs = 0, .measure_bandwidth = false});
  ASSERT_TRUE(traced.attribution.believable) << traced.attribution.refusal;
  ASSERT_EQ(traced.trace.events().steps.size(), 4U);
  std::int64_t spans_ns = 0;
  std::int64_t timer_ns = 0;
  for (const StepAccount& step : traced.attribution.steps) {
    EXPECT_EQ(std::accumulate(step.host_stage_ns.begin(), step.host_stage_ns.end(), step.residual_ns), step.span_ns);
    EXPECT_GT(step.residual_ns, 0) << "no step is without any time outside of stages";
    spans_ns += step.span_ns;
  }
  for (const Step& step : traced.trace.events().steps) {
    timer_ns += step.timer_ns;
    EXPECT_EQ(step.keys, 8 + step.index);
  }
  EXPECT_NEAR(static_cast<double>(timer_ns) / static_cast<double>(spans_ns), 1, 0.005);
}

TEST(TracePass, MeasuresWhatItCostsByPairs) {
  const Engine engine(small(), bind_arm(parse_arm("causal"), reference_plan()));
  const TracedCell traced = traced_cell(engine, "causal", {.steps = 2, .pairs = 4, .measure_bandwidth = false});
  const Perturbation& perturbation = traced.trace.events().session.perturbation;
  EXPECT_EQ(perturbation.pairs, 4);
  EXPECT_LT(perturbation.low, perturbation.ratio);
  EXPECT_LT(perturbation.ratio, perturbation.high);
}

TEST(TracePass, RefusesMoreRowsThanAllowedBeforeItTraces) {
  const Engine engine(small(), bind_arm(parse_arm("causal"), reference_plan()));
  try {
    traced_cell(engine, "causal", {.steps = 8, .most_events = 100, .pairs = 0, .measure_bandwidth = false});
    FAIL() << "a trace of more rows than allowed was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("--steps"), std::string::npos) << error.what();
  }
}

TEST(TracePass, SaysWhatTheModelExpectsOfEachStage) {
  const Engine engine(small(), bind_arm(parse_arm("causal"), reference_plan()));
  const TracedCell traced = traced_cell(engine, "causal", {.steps = 1, .pairs = 0, .measure_bandwidth = false});
  std::map<Stage, std::int64_t> bytes;
  for (const HostSpan& span : traced.trace.events().spans) {
    bytes[span.stage] += span.kind == SpanKind::stage ? span.expected_bytes : 0;
  }
  const ModelConfig& config = engine.model().config();
  EXPECT_EQ(bytes[Stage::head], 4 * config.hidden_size * config.vocabulary_size);
  EXPECT_EQ(bytes[Stage::attention], 4 * config.layers * 2 * 8 * config.kv_width());
}

}  // namespace
}  // namespace decodelab
