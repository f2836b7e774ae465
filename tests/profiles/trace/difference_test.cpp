// The rows of a difference add up to it, and say what was removed, added, slower and faster.
#include "profiles/trace/difference.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/profiles/trace/checked.h"

namespace decodelab {
namespace {

struct Accounted {
  explicit Accounted(const TraceEvents& events) : trace(seal(events)), attribution(attribute(trace, verify(trace))) {}
  explicit Accounted(const SyntheticShape& shape) : Accounted(synthetic_trace(shape).events) {}

  Trace trace;
  Attribution attribution;
};

TraceDifference difference_of(const Accounted& a, const Accounted& b) {
  return difference(a.trace, a.attribution, b.trace, b.attribution);
}

std::int64_t sum(const std::vector<DifferenceRow>& rows) {
  std::int64_t sum = 0;
  for (const DifferenceRow& row : rows) {
    sum += row.delta_ns;
  }
  return sum;
}

const DifferenceRow* find(const std::vector<DifferenceRow>& rows, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const DifferenceRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

TEST(Difference, RowsOfEveryTableAddUpExactlyForRandomPairs) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const bool cpu_only = seed % 2 == 0;
    const Accounted a({.layers = 2, .steps = 1 + static_cast<int>(seed % 7), .cpu_only = cpu_only, .seed = seed});
    const Accounted b({.layers = 3, .steps = 3, .graph = true, .cpu_only = cpu_only, .seed = seed + 1000});
    const TraceDifference moved = difference_of(a, b);
    ASSERT_EQ(moved.refusal, "");
    ASSERT_EQ(sum(moved.stages), moved.delta_ns) << seed;
    ASSERT_EQ(sum(moved.layers), moved.delta_ns) << seed;
    ASSERT_EQ(sum(moved.operations), moved.delta_ns) << seed;
    ASSERT_NEAR(static_cast<double>(moved.delta_ns), moved.b_step_ns - moved.a_step_ns, 0.51);
    for (const DifferenceRow& row : moved.operations) {
      EXPECT_LT(std::abs(static_cast<double>(row.delta_ns) - (row.b_ns - row.a_ns)), 1.001) << row.name;
    }
    const auto opposite = difference_of(b, a);
    EXPECT_LE(std::abs(opposite.delta_ns + moved.delta_ns), 1);
  }
}

TEST(Difference, OfATraceWithItselfIsNothing) {
  const Accounted a(SyntheticShape{});
  const TraceDifference moved = difference_of(a, a);
  EXPECT_EQ(moved.delta_ns, 0);
  for (const DifferenceRow& row : moved.operations) {
    EXPECT_EQ(row.delta_ns, 0);
    EXPECT_EQ(row.change, Change::same);
  }
}

TEST(Difference, NamesWhatWasRemovedAddedSlowerAndFaster) {
  const SyntheticShape shape{.layers = 2, .kernels_per_layer = 6, .cpu_only = true};
  const TraceEvents events = synthetic_trace(shape).events;
  TraceEvents changed = events;
  const StringId old_name = changed.strings.id("aten::norm_0");
  const StringId new_name = changed.strings.id("aten::fused_norm");
  for (HostSpan& span : changed.spans) {
    if (span.name == old_name) {
      span.name = new_name;
    }
  }
  // The last operator of each step takes longer, and with it everything around it.
  const StringId last_name = changed.strings.id("aten::choice_1");
  for (Step& step : changed.steps) {
    step.end_ns += 50;
  }
  for (HostSpan& span : changed.spans) {
    if (span.name == last_name || span.kind == SpanKind::step) {
      span.end_ns += 50;
    }
    if (span.kind == SpanKind::stage && span.stage == Stage::choice) {
      span.end_ns += 50;
    }
  }
  for (Step& step : changed.steps) {
    step.timer_ns = 0;
  }
  const Accounted a(events);
  const Accounted b(changed);
  ASSERT_TRUE(b.attribution.believable) << b.attribution.refusal;
  const TraceDifference moved = difference_of(a, b);
  EXPECT_EQ(moved.delta_ns, 50);
  ASSERT_NE(find(moved.operations, "aten::norm_0"), nullptr);
  EXPECT_EQ(find(moved.operations, "aten::norm_0")->change, Change::removed);
  EXPECT_EQ(find(moved.operations, "aten::norm_0")->b_calls, 0);
  EXPECT_EQ(find(moved.operations, "aten::fused_norm")->change, Change::added);
  EXPECT_EQ(find(moved.operations, "aten::choice_1")->change, Change::slower);
  EXPECT_EQ(find(moved.operations, "aten::choice_1")->delta_ns, 50);
  EXPECT_EQ(find(moved.operations, "aten::head_0")->change, Change::same);
  EXPECT_EQ(find(difference_of(b, a).operations, "aten::choice_1")->change, Change::faster);
  ASSERT_EQ(moved.stages.front().stage, Stage::choice);
  EXPECT_EQ(moved.stages.front().delta_ns, 50);
}

TEST(Difference, HasTheResidualAsARowEvenWhereItIsNothing) {
  TraceEvents events = synthetic_trace({.cpu_only = true}).events;
  const Accounted a(events);
  const auto is_residual = [](const DifferenceRow& row) { return row.kind == ShareKind::residual && row.name.empty(); };
  const TraceDifference moved = difference_of(a, a);
  for (const auto* table : {&moved.stages, &moved.layers, &moved.operations}) {
    EXPECT_EQ(std::count_if(table->begin(), table->end(), is_residual), 1);
  }
}

TEST(Difference, TellsGapsByTheirCauseAndLaunchesByTheirNumber) {
  const Accounted eager(SyntheticShape{.layers = 4, .causes = {GapCause::dispatch}});
  const Accounted graph(SyntheticShape{.layers = 4, .graph = true, .causes = {GapCause::dispatch}});
  const TraceDifference moved = difference_of(eager, graph);
  const auto gap = [&](GapCause cause) {
    return std::find_if(moved.stages.begin(), moved.stages.end(),
                        [&](const DifferenceRow& row) { return row.kind == ShareKind::gap && row.cause == cause; });
  };
  EXPECT_EQ(gap(GapCause::dispatch)->change, Change::faster);
  EXPECT_EQ(gap(GapCause::dependency)->change, Change::added);
  EXPECT_EQ(moved.amounts.front().name, "launches");
  EXPECT_EQ(moved.amounts.front().a, 2 + 4 * 5);
  EXPECT_EQ(moved.amounts.front().b, 3);
}

TEST(Difference, RefusesWhatCannotBeCompared) {
  const Accounted device(SyntheticShape{});
  const Accounted cpu(SyntheticShape{.cpu_only = true});
  EXPECT_NE(difference_of(device, cpu).refusal.find("one trace is of a device"), std::string::npos);
  TraceEvents events = synthetic_trace({}).events;
  events.session.dropped_records = 9;
  const Accounted broken(events);
  EXPECT_NE(difference_of(device, broken).refusal.find("the second trace cannot be believed: I1"), std::string::npos);
  EXPECT_TRUE(difference_of(broken, device).stages.empty());
}

}  // namespace
}  // namespace decodelab
