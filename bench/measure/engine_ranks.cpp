// Turns the ranges of ranks into spans of their threads.
#include "bench/measure/engine_ranks.h"

#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "profiles/trace/join.h"

namespace decodelab {
namespace {

HostSpan span_of(const RankRange& range, const NamedThread& rank, TraceEvents& events) {
  HostSpan span{.start_ns = range.start_ns,
                .end_ns = range.end_ns,
                .thread = rank.thread,
                .layer = range.layer,
                .kind = range.is_layer ? SpanKind::layer : SpanKind::stage,
                .stage = range.stage,
                .process = rank.process};
  span.name = events.strings.id(range.is_layer ? fmt::format("layer {}", range.layer) : stage_name(range.stage));
  if (const std::int64_t row = step_row_at(events.steps, range.start_ns); row != kNoRow) {
    span.step = events.steps[static_cast<std::size_t>(row)].index;
  }
  return span;
}

}  // namespace

void RankCollector::start(const TraceConfig& config) {
  static_cast<void>(config);  // The rank's own room is the limit.
  engine_.record_ranks();
}

void RankCollector::stop() { records_ = engine_.recorded_ranks(); }

void RankCollector::drain(TraceEvents& events) {
  for (const RankRecord& record : std::exchange(records_, {})) {
    const NamedThread rank{.process = record.process == getpid() ? 0 : record.process,
                           .thread = record.thread,
                           .name = fmt::format("rank {}", record.rank)};
    events.session.threads.push_back(rank);
    for (const RankRange& range : record.ranges) {
      events.spans.push_back(span_of(range, rank, events));
    }
    events.session.dropped_records += record.dropped;
  }
  events.session.collectors.push_back({.name = name(), .on = true, .reason = ""});
}

}  // namespace decodelab
