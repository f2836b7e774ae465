// Joins the spans and calls of each thread, with a stack of the spans that are open.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "profiles/trace/join.h"

namespace decodelab {
namespace {

struct OpenSpan {
  std::int64_t end_ns = 0;
  std::int64_t row = kNoRow;
};

/// The open spans of each thread. Rows come in bursts of one thread, so the last thread is remembered.
class OpenSpans {
 public:
  /// Returns the open spans of `thread`, without those that have ended by `time_ns`.
  std::vector<OpenSpan>& at(std::int64_t thread, std::int64_t time_ns) {
    if (last_ == nullptr || thread != last_thread_) {
      last_ = &threads_[thread];
      last_thread_ = thread;
    }
    while (!last_->empty() && last_->back().end_ns <= time_ns) {
      last_->pop_back();
    }
    return *last_;
  }

 private:
  std::unordered_map<std::int64_t, std::vector<OpenSpan>> threads_;  // An unordered_map never moves its values.
  std::vector<OpenSpan>* last_ = nullptr;
  std::int64_t last_thread_ = 0;
};

void inherit(HostSpan& span, const HostSpan& around) {
  if (span.step == kNoStep) {
    span.step = around.step;
  }
  if (span.layer == kNoLayer) {
    span.layer = around.layer;
  }
  const bool has_no_stage_of_its_own = span.kind == SpanKind::operator_call || span.kind == SpanKind::other;
  if (has_no_stage_of_its_own && span.stage == Stage::other) {
    span.stage = around.stage;
  }
}

void place_span(TraceEvents& events, OpenSpans& open, std::int64_t row) {
  HostSpan& span = events.spans[static_cast<std::size_t>(row)];
  std::vector<OpenSpan>& stack = open.at(span.thread, span.start_ns);
  constexpr std::size_t kDeepest = std::numeric_limits<std::uint16_t>::max();
  span.depth = static_cast<std::uint16_t>(std::min(stack.size(), kDeepest));
  if (!stack.empty()) {
    inherit(span, events.spans[static_cast<std::size_t>(stack.back().row)]);
  }
  const bool runs_steps = events.session.main_thread == 0 || span.thread == events.session.main_thread;
  if (span.step == kNoStep && runs_steps) {
    const std::int64_t step = step_row_at(events.steps, span.start_ns);
    if (step != kNoRow) {
      span.step = events.steps[static_cast<std::size_t>(step)].index;
    }
  }
  if (span.end_ns <= span.start_ns) {
    return;  // A span that is still open, inverted or empty has nothing inside.
  }
  // Check I6 reports a span that ends after the one around it; here it ends with that one.
  const std::int64_t end_ns = stack.empty() ? span.end_ns : std::min(span.end_ns, stack.back().end_ns);
  stack.push_back({.end_ns = end_ns, .row = row});
}

}  // namespace

std::int64_t step_row_at(const std::vector<Step>& steps, std::int64_t time_ns) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), time_ns,
                                      [](std::int64_t value, const Step& step) { return value < step.start_ns; });
  if (after == steps.begin()) {
    return kNoRow;
  }
  const auto step = after - 1;
  return time_ns < step->end_ns ? step - steps.begin() : kNoRow;
}

std::vector<std::int64_t> place_on_host(TraceEvents& events) {
  std::vector<std::int64_t> spans_of_calls(events.api_calls.size(), kNoRow);
  OpenSpans open;
  std::int64_t span_row = 0;
  const auto span_count = static_cast<std::int64_t>(events.spans.size());
  const auto place_until = [&](std::int64_t time_ns) {
    for (; span_row < span_count && events.spans[static_cast<std::size_t>(span_row)].start_ns <= time_ns; ++span_row) {
      place_span(events, open, span_row);
    }
  };
  for (std::size_t row = 0; row < events.api_calls.size(); ++row) {
    const ApiCall& call = events.api_calls[row];
    place_until(call.start_ns);
    const std::vector<OpenSpan>& stack = open.at(call.thread, call.start_ns);
    if (!stack.empty()) {
      spans_of_calls[row] = stack.back().row;
    }
  }
  place_until(std::numeric_limits<std::int64_t>::max());
  return spans_of_calls;
}

}  // namespace decodelab
