// The summary holds what the account holds, and is JSON whatever the names are.
#include "profiles/trace/summary_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/profiles/trace/checked.h"

namespace decodelab {
namespace {

nlohmann::ordered_json summary_of(const TraceEvents& events) {
  const Trace trace = seal(events);
  const TraceQuality quality = verify(trace);
  return nlohmann::ordered_json::parse(summary_text(trace, quality, attribute(trace, quality)));
}

TEST(SummaryJson, OfADeviceAddsUp) {
  TraceEvents events = synthetic_trace({.steps = 4, .graph = true}).events;
  events.steps[0].excluded_reason = "warm-up";
  const auto summary = summary_of(events);
  EXPECT_EQ(summary["verdict"], "ok");
  EXPECT_TRUE(summary["refusal"].is_null());
  EXPECT_EQ(summary["checks"].size(), 17U);
  EXPECT_EQ(summary["steps"].size(), 4U);
  EXPECT_EQ(summary["steps"][0]["excluded_reason"], "warm-up");
  EXPECT_FALSE(summary["steps"][0].contains("span_ns"));
  std::int64_t steps_ns = 0;
  for (int i = 1; i < 4; ++i) {
    const auto& step = summary["steps"][i];
    std::int64_t parts_ns = step["busy_ns"];
    for (const auto& [cause, ns] : step["gap_ns"].items()) {
      parts_ns += ns.get<std::int64_t>();
    }
    EXPECT_EQ(parts_ns, step["span_ns"]);
    EXPECT_EQ(step["graph_launches_counted"], 1);
    steps_ns += parts_ns;
  }
  EXPECT_EQ(steps_ns, summary["steps_ns"]);
  EXPECT_EQ(summary["counts"]["operations"], events.operations.size());
  EXPECT_EQ(summary["session"]["devices"][0]["measured_bytes_per_second"], 3e12);
}

TEST(SummaryJson, OfACpuHasNullWhereADeviceWouldBe) {
  const auto summary = summary_of(synthetic_trace({.cpu_only = true}).events);
  EXPECT_TRUE(summary["gaps"].is_null());
  EXPECT_TRUE(summary["steps"][1]["busy_ns"].is_null());
  EXPECT_TRUE(summary["steps"][1]["launches_counted"].is_null());
  EXPECT_TRUE(summary["stages"][0]["device_ns"].is_null());
  EXPECT_TRUE(summary["perturbation"].is_null());
  std::int64_t parts_ns = summary["steps"][1]["residual_ns"];
  for (const auto& [stage, ns] : summary["steps"][1]["host_stage_ns"].items()) {
    parts_ns += ns.get<std::int64_t>();
  }
  EXPECT_EQ(parts_ns, summary["steps"][1]["span_ns"]);
}

TEST(SummaryJson, OfABrokenTraceHasTheRefusalAndNoAccount) {
  TraceEvents events = synthetic_trace({}).events;
  events.session.dropped_records = 3;
  const auto summary = summary_of(events);
  EXPECT_EQ(summary["verdict"], "broken");
  EXPECT_EQ(summary["refusal"], summary["reason"]);
  EXPECT_TRUE(summary["bound_by"].is_null());
  EXPECT_TRUE(summary["stages"].empty());
  EXPECT_FALSE(summary["steps"][0].contains("span_ns"));
}

TEST(SummaryJson, RepairsNamesThatAreNotUtf8) {
  TraceEvents events = synthetic_trace({.cpu_only = true}).events;
  const StringId name = events.strings.id("\xff\xfe");
  events.session.model = "\xc3";
  for (HostSpan& span : events.spans) {
    if (span.kind == SpanKind::operator_call) {
      span.name = name;
    }
  }
  EXPECT_EQ(summary_of(events)["verdict"], "ok");
}

}  // namespace
}  // namespace decodelab
