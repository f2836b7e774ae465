// Self times by a sweep over the spans of each thread.
#include "profiles/trace/host_time.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace decodelab {
namespace {

SpanPlace place_inside(const SpanPlace& around, const HostSpan& span, std::int64_t row) {
  SpanPlace place = around;
  place.layer = span.layer;
  switch (span.kind) {
    case SpanKind::stage: return {.in_stage = true, .stage = span.stage, .layer = span.layer, .operator_row = kNoRow};
    case SpanKind::operator_call: place.operator_row = row; break;
    case SpanKind::step:
    case SpanKind::layer:
    case SpanKind::other: break;
  }
  if (span.stage != Stage::other) {
    place.in_stage = true;
    place.stage = span.stage;
  }
  return place;
}

/// The open spans of one thread, and the time up to which their self time is counted.
struct Sweep {
  struct Open {
    std::int64_t end_ns = 0;
    std::int64_t row = kNoRow;
  };
  std::vector<Open> open;
  std::int64_t cursor_ns = 0;
};

class Sweeper {
 public:
  Sweeper(const TraceEvents& events, std::int64_t thread) : events_(events), thread_(thread) {
    times_.self_ns.resize(events.spans.size());
    times_.places.resize(events.spans.size());
  }

  HostTimes run() {
    for (std::size_t row = 0; row < events_.spans.size(); ++row) {
      enter(static_cast<std::int64_t>(row));
    }
    for (auto& [thread, sweep] : sweeps_) {
      close(thread, sweep, std::numeric_limits<std::int64_t>::max());
    }
    return std::move(times_);
  }

 private:
  void enter(std::int64_t row) {
    const HostSpan& span = events_.spans[static_cast<std::size_t>(row)];
    Sweep& sweep = sweeps_[span.thread];
    close(span.thread, sweep, span.start_ns);
    const SpanPlace around =
        sweep.open.empty() ? SpanPlace{} : times_.places[static_cast<std::size_t>(sweep.open.back().row)];
    times_.places[static_cast<std::size_t>(row)] = place_inside(around, span, row);
    if (span.end_ns <= span.start_ns) {
      return;
    }
    if (!sweep.open.empty()) {
      give(span.thread, sweep, span.start_ns);
    }
    sweep.cursor_ns = span.start_ns;
    const std::int64_t end_ns = sweep.open.empty() ? span.end_ns : std::min(span.end_ns, sweep.open.back().end_ns);
    sweep.open.push_back({.end_ns = end_ns, .row = row});
  }

  void close(std::int64_t thread, Sweep& sweep, std::int64_t time_ns) {
    while (!sweep.open.empty() && sweep.open.back().end_ns <= time_ns) {
      give(thread, sweep, sweep.open.back().end_ns);
      sweep.open.pop_back();
    }
  }

  /// Adds the time up to `until_ns` to the innermost open span.
  void give(std::int64_t thread, Sweep& sweep, std::int64_t until_ns) {
    if (until_ns <= sweep.cursor_ns) {
      return;
    }
    const std::int64_t row = sweep.open.back().row;
    times_.self_ns[static_cast<std::size_t>(row)] += until_ns - sweep.cursor_ns;
    if (thread == thread_) {
      times_.segments.push_back({.start_ns = sweep.cursor_ns, .end_ns = until_ns, .span_row = row});
    }
    sweep.cursor_ns = until_ns;
  }

  const TraceEvents& events_;
  std::int64_t thread_;
  HostTimes times_;
  std::unordered_map<std::int64_t, Sweep> sweeps_;
};

}  // namespace

HostTimes host_times(const TraceEvents& events, std::int64_t thread) { return Sweeper(events, thread).run(); }

std::int64_t step_thread(const TraceEvents& events) {
  const std::int64_t main_thread = events.session.main_thread;
  const auto is_main = [&](const HostSpan& span) { return span.thread == main_thread; };
  if (events.spans.empty() || std::any_of(events.spans.begin(), events.spans.end(), is_main)) {
    return main_thread;
  }
  const auto is_step = [](const HostSpan& span) { return span.kind == SpanKind::step; };
  const auto step = std::find_if(events.spans.begin(), events.spans.end(), is_step);
  return step == events.spans.end() ? events.spans.front().thread : step->thread;
}

}  // namespace decodelab
