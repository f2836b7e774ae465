// Limits of imports, and what traces of others do not say themselves.
#include "profiles/write/import_rows.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "profiles/write/rows.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostSentence = 400;
/// The earliest time that is accepted: a file whose rows begin longer before time 0 is no capture, but damage.
constexpr std::int64_t kEarliestTime = -60'000'000'000;

}  // namespace

ImportedRows::ImportedRows(const std::filesystem::path& path, const ImportLimits& limits)
    : file_(path.filename().string()), limits_(limits) {}

void ImportedRows::refuse(const std::string& what) const {
  // Part of the sentence comes from the file, so it is cut to one line that is not long.
  std::string sentence = file_ + " " + what;
  if (sentence.size() > kMostSentence) {
    sentence = sentence.substr(0, kMostSentence) + "...'";
  }
  for (char& c : sentence) {
    if (static_cast<unsigned char>(c) < ' ') {
      c = ' ';
    }
  }
  throw ImportRefusal(sentence + ".");
}

void ImportedRows::refuse_number(std::int64_t value, std::string_view what) const {
  refuse("says " + std::to_string(value) + " for " + std::string(what) + ", which no machine has");
}

void ImportedRows::count() {
  if (++rows_ > limits_.most_events) {
    refuse("has more than " + std::to_string(limits_.most_events) +
           " events, and a part of a trace would be taken for the whole: trace fewer steps, or raise the limit");
  }
}

StringId ImportedRows::text(std::string_view text) {
  const std::size_t before = events_.strings.size();
  const StringId id = events_.strings.id(text);
  if (events_.strings.size() != before) {
    text_bytes_ += static_cast<std::int64_t>(text.size());
    if (text_bytes_ > limits_.most_text_bytes) {
      refuse("has more than " + std::to_string(limits_.most_text_bytes) + " bytes of names");
    }
  }
  return id;
}

std::int64_t ImportedRows::time(std::int64_t ns) const {
  if (ns < kEarliestTime || ns > kLatestTime) {
    refuse("has an event at " + std::to_string(ns) + " ns, which is no time of a clock");
  }
  return ns;
}

ApiKind api_kind(std::string_view name) {
  static constexpr std::array<std::pair<const char*, ApiKind>, 10> kWords{{{"GraphLaunch", ApiKind::graph_launch},
                                                                           {"Launch", ApiKind::launch},
                                                                           {"Memcpy", ApiKind::copy},
                                                                           {"Memset", ApiKind::set},
                                                                           {"Synchronize", ApiKind::synchronize},
                                                                           {"WaitEvent", ApiKind::synchronize},
                                                                           {"Malloc", ApiKind::allocate},
                                                                           {"MemAlloc", ApiKind::allocate},
                                                                           {"MemFree", ApiKind::allocate},
                                                                           {"Free", ApiKind::allocate}}};
  for (const auto& [word, kind] : kWords) {
    if (name.find(word) != std::string_view::npos) {
      return kind;
    }
  }
  return ApiKind::other;
}

namespace {

// The step spans of each thread, sorted by start.
using StepSpans = std::map<std::int64_t, std::vector<const HostSpan*>>;

void fill_steps_of_spans(TraceEvents& events, StepSpans& steps) {
  for (auto& [thread, spans] : steps) {
    std::sort(spans.begin(), spans.end(),
              [](const HostSpan* a, const HostSpan* b) { return a->start_ns < b->start_ns; });
  }
  for (HostSpan& span : events.spans) {
    const auto found = steps.find(span.thread);
    if (span.step != kNoStep || found == steps.end()) {
      continue;
    }
    const auto& spans = found->second;
    const auto after =
        std::upper_bound(spans.begin(), spans.end(), span.start_ns,
                         [](std::int64_t start, const HostSpan* step) { return start < step->start_ns; });
    if (after == spans.begin()) {
      continue;
    }
    const HostSpan& step = **(after - 1);
    if (span.end_ns <= step.end_ns) {
      span.step = step.step;
    }
  }
}

/// Moves all times so that no row begins at time 0 or before, since 0 stands for "none" in many places.
void move_behind_zero(TraceEvents& events) {
  std::int64_t first_ns = 1;
  for_each_time(events, [&](std::int64_t start_ns, std::int64_t) {
    first_ns = std::min(first_ns, start_ns);
    events.session.negative_times += start_ns < 0 ? 1 : 0;
  });
  const std::int64_t moved_ns = 1 - first_ns;
  if (moved_ns == 0) {
    return;
  }
  const auto move = [&](auto& rows, bool may_be_open) {
    for (auto& row : rows) {
      row.start_ns += moved_ns;
      if (!may_be_open || row.end_ns != 0) {
        row.end_ns += moved_ns;
      }
    }
  };
  move(events.spans, true);
  move(events.api_calls, false);
  move(events.operations, false);
  move(events.waits, false);
  move(events.overheads, false);
  move(events.steps, false);
  for (CounterPoint& point : events.counters) {
    point.time_ns += moved_ns;
  }
  events.session.unix_offset_ns -= moved_ns;
}

}  // namespace

void complete_foreign(TraceEvents& events) {
  TraceSession& session = events.session;
  session.foreign = true;
  move_behind_zero(events);
  StepSpans step_spans;
  for (const HostSpan& span : events.spans) {
    if (span.kind == SpanKind::step && span.step != kNoStep) {
      step_spans[span.thread].push_back(&span);
    }
  }
  if (events.steps.empty()) {
    for (const HostSpan& span : events.spans) {
      if (span.kind == SpanKind::step && span.step != kNoStep) {
        events.steps.push_back({.index = span.step, .start_ns = span.start_ns, .end_ns = span.end_ns});
      }
    }
  }
  if (!step_spans.empty()) {
    session.main_thread = step_spans.begin()->first;
  } else if (!events.api_calls.empty()) {
    session.main_thread = events.api_calls.front().thread;
  } else if (!events.spans.empty()) {
    session.main_thread = events.spans.front().thread;
  }
  fill_steps_of_spans(events, step_spans);
  const TraceBounds bounds = bounds_of(events);
  session.window_start_ns = session.capture_start_ns = bounds.start_ns;
  session.window_end_ns = session.capture_end_ns = bounds.end_ns;
  session.tier = events.api_calls.empty() ? TraceTier::kernels : TraceTier::causes;
  session.device = events.operations.empty() ? "cpu" : "cuda";
  session.graph_granularity =
      std::any_of(events.operations.begin(), events.operations.end(),
                  [](const DeviceOperation& row) { return row.kind == DeviceOperationKind::graph; });
}

}  // namespace decodelab
