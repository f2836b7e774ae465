// Looks for ranges or launches that divide a trace into steps, from the surest sign to the weakest.
#include "profiles/trace/find_steps.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include <fmt/format.h>

#include "profiles/trace/names.h"

namespace decodelab {
namespace {

constexpr std::size_t kOffered = 5;

using Spans = std::vector<HostSpan*>;

bool is_closed(const HostSpan& span) { return span.end_ns > span.start_ns; }

/// Returns the spans of the thread that has most of them, by start, without those inside of others.
Spans outermost_on_one_thread(const Spans& spans) {
  std::map<std::int64_t, Spans> threads;
  for (HostSpan* span : spans) {
    threads[span->thread].push_back(span);
  }
  if (threads.empty()) {
    return {};
  }
  auto chosen = std::max_element(threads.begin(), threads.end(),
                                 [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::stable_sort(chosen->second.begin(), chosen->second.end(), [](const HostSpan* a, const HostSpan* b) {
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->end_ns > b->end_ns;
  });
  Spans outer;
  for (HostSpan* span : chosen->second) {
    if (outer.empty() || span->start_ns >= outer.back()->end_ns) {
      outer.push_back(span);
    }
  }
  return outer;
}

/// Removes all steps: afterwards no span is a step or lies in one.
void forget_steps(TraceEvents& events) {
  events.steps.clear();
  for (HostSpan& span : events.spans) {
    if (span.kind == SpanKind::step) {
      span.kind = SpanKind::other;
    }
    span.step = kNoStep;
  }
}

/// Makes a step of each span. The numbers that the trace gives are kept where each step has one of its own.
void make_steps(TraceEvents& events, const Spans& spans, const std::string& what) {
  std::vector<std::int32_t> numbers;
  for (const HostSpan* span : spans) {
    numbers.push_back(span->step);
  }
  const std::set<std::int32_t> different(numbers.begin(), numbers.end());
  const bool numbered = different.size() == numbers.size() && !different.contains(kNoStep);
  forget_steps(events);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    spans[i]->kind = SpanKind::step;
    spans[i]->step = numbered ? numbers[i] : static_cast<std::int32_t>(i);
    events.steps.push_back({.index = spans[i]->step, .start_ns = spans[i]->start_ns, .end_ns = spans[i]->end_ns});
  }
  events.session.main_thread = spans.front()->thread;
  events.session.steps_from = what;
}

std::regex expression(const std::string& text) {
  try {
    return std::regex(text, std::regex::ECMAScript);
  } catch (const std::regex_error&) {
    throw std::invalid_argument(fmt::format("--step-range: '{}' is no regular expression", text));
  }
}

std::string offer(const TraceEvents& events) {
  const std::vector<RangeCandidate> candidates = step_candidates(events, kOffered);
  if (candidates.empty()) {
    return "the trace holds no range that occurs twice";
  }
  std::string text;
  for (const RangeCandidate& range : candidates) {
    text += fmt::format("{}'{}' ({} times, median {:.3f} ms)", text.empty() ? "" : ", ", range.name.substr(0, 60),
                        range.count, static_cast<double>(range.median_ns) * 1e-6);
  }
  return "those that cover most time are " + text;
}

void steps_by_range(TraceEvents& events, const std::string& step_range) {
  const std::regex wanted = expression(step_range);
  // Each name is looked at once: traces have few names and many ranges.
  std::unordered_map<StringId, bool> fits;
  Spans spans;
  for (HostSpan& span : events.spans) {
    const auto [place, is_new] = fits.try_emplace(span.name, false);
    if (is_new) {
      place->second = std::regex_search(events.strings.text(span.name), wanted);
    }
    if (place->second && is_closed(span)) {
      spans.push_back(&span);
    }
  }
  const Spans steps = outermost_on_one_thread(spans);
  if (steps.empty()) {
    throw std::invalid_argument(
        fmt::format("--step-range: no range of this process fits '{}'; {}", step_range, offer(events)));
  }
  make_steps(events, steps, fmt::format("ranges that fit '{}'", step_range));
}

bool steps_by_marks(TraceEvents& events) {
  Spans spans;
  for (HostSpan& span : events.spans) {
    if (span.kind == SpanKind::step && is_closed(span)) {
      spans.push_back(&span);
    }
  }
  const Spans steps = outermost_on_one_thread(spans);
  if (steps.empty()) {
    return false;
  }
  make_steps(events, steps, "the trace's own step ranges");
  return true;
}

/// Makes steps from one graph launch to the next, on the thread with most of them. The last launch begins no step,
/// since nothing shows where it would end.
bool steps_by_graphs(TraceEvents& events) {
  std::map<std::int64_t, std::vector<std::int64_t>> threads;
  std::set<std::uint32_t> launches;  // A driver's call inside of a runtime's is the same launch.
  for (const ApiCall& call : events.api_calls) {
    const bool is_new = call.kind == ApiKind::graph_launch && launches.insert(call.correlation).second;
    if (is_new) {
      threads[call.thread].push_back(call.start_ns);
    }
  }
  if (threads.empty()) {
    return false;
  }
  auto& [thread, starts] = *std::max_element(
      threads.begin(), threads.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (starts.size() < 2) {
    return false;
  }
  forget_steps(events);
  std::sort(starts.begin(), starts.end());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    events.steps.push_back({.index = static_cast<std::int32_t>(i), .start_ns = starts[i], .end_ns = starts[i + 1]});
  }
  events.session.main_thread = thread;
  events.session.steps_from = "CUDA graph launches, each to the next";
  return true;
}

void whole_window(TraceEvents& events, const std::optional<TimeInterval>& window) {
  TraceSession& session = events.session;
  forget_steps(events);
  std::int64_t start_ns = session.window_end_ns;
  std::int64_t end_ns = session.window_start_ns;
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) {
      start_ns = std::min(start_ns, row.start_ns);
      end_ns = std::max(end_ns, row.end_ns);
    }
  };
  // Where there is a device, its operations define the window: nothing is known of it before the first and after the
  // last.
  if (events.operations.empty()) {
    add(events.spans);
    add(events.api_calls);
  } else {
    add(events.operations);
  }
  const char* what = "the whole window, since nothing in it marks steps";
  if (window) {
    start_ns = std::max(start_ns, window->start_ns);
    end_ns = std::min(end_ns, window->end_ns);
    what = "the window that was asked for, since nothing in it marks steps";
  }
  if (end_ns <= start_ns) {
    throw std::invalid_argument(window ? "--window: nothing was recorded in it" : "nothing was recorded");
  }
  events.steps = {{.index = 0, .start_ns = start_ns, .end_ns = end_ns}};
  session.steps_from = what;
  session.steps_by_time = true;
  session.window_start_ns = std::min(session.window_start_ns, start_ns);
  session.window_end_ns = std::max(session.window_end_ns, end_ns);
}

/// Leaves out steps whose operations lie after the capture, that lie outside of the window that was asked for, or that
/// the capture cuts.
void leave_out(TraceEvents& events, const std::optional<TimeInterval>& window) {
  std::vector<std::int64_t> outlasting;
  for (const ApiCall& call : events.api_calls) {
    if (call.outlasts && call.thread == events.session.main_thread) {
      outlasting.push_back(call.start_ns);
    }
  }
  std::sort(outlasting.begin(), outlasting.end());
  for (Step& step : events.steps) {
    const auto first = std::lower_bound(outlasting.begin(), outlasting.end(), step.start_ns);
    if (first != outlasting.end() && *first < step.end_ns) {
      step.excluded_reason = "its operations outlast the capture";
    }
    if (window && (step.start_ns < window->start_ns || step.end_ns > window->end_ns)) {
      step.excluded_reason = "outside of the window that was asked for";
    }
    if (!step.excluded_reason.empty()) {
      continue;
    }
    if (step.start_ns < events.session.window_start_ns) {
      step.excluded_reason = "cut by the start of the capture";
    }
    if (step.end_ns > events.session.window_end_ns) {
      step.excluded_reason = "cut by the end of the capture";
    }
  }
}

bool any_left(const TraceEvents& events) {
  return std::any_of(events.steps.begin(), events.steps.end(),
                     [](const Step& step) { return step.excluded_reason.empty(); });
}

}  // namespace

std::vector<RangeCandidate> step_candidates(const TraceEvents& events, std::size_t most) {
  std::map<std::string, std::vector<std::int64_t>> lengths;
  std::unordered_map<StringId, std::vector<std::int64_t>*> places;
  for (const HostSpan& span : events.spans) {
    if (!is_closed(span)) {
      continue;
    }
    const auto [place, is_new] = places.try_emplace(span.name, nullptr);
    if (is_new) {
      place->second = &lengths[range_kind(events.strings.text(span.name))];
    }
    place->second->push_back(span.end_ns - span.start_ns);
  }
  std::vector<RangeCandidate> candidates;
  for (auto& [name, all] : lengths) {
    if (all.size() < 2) {
      continue;
    }
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    RangeCandidate range{.name = name, .count = static_cast<std::int64_t>(all.size()), .median_ns = *middle};
    for (const std::int64_t ns : all) {
      range.total_ns += ns;
    }
    candidates.push_back(range);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const RangeCandidate& a, const RangeCandidate& b) { return a.total_ns > b.total_ns; });
  candidates.resize(std::min(candidates.size(), most));
  return candidates;
}

void find_steps(TraceEvents& events, const std::string& step_range, const std::optional<TimeInterval>& window) {
  TraceSession& session = events.session;
  // Steps that an earlier import found are kept, since this call asks for no others.
  const bool found = step_range.empty() && !session.steps_from.empty();
  if (found && session.steps_by_time && !window) {
    return;
  }
  if (found && !session.steps_by_time) {
    leave_out(events, window);
    return;
  }
  events.steps.clear();
  session.steps_by_time = false;
  if (!step_range.empty()) {
    steps_by_range(events, step_range);
    leave_out(events, window);
    return;
  }
  if (steps_by_marks(events)) {
    leave_out(events, window);
  }
  if (any_left(events)) {
    return;
  }
  if (steps_by_graphs(events)) {
    leave_out(events, window);
  }
  if (any_left(events)) {
    return;
  }
  whole_window(events, window);
}

}  // namespace decodelab
