// Finds the busy time of a device in a sweep, and the causes of its gaps from the calls and waits of the host.
#include "profiles/trace/device_time.h"

#include <algorithm>
#include <map>
#include <utility>

#include "profiles/trace/launch_set.h"

namespace decodelab {
namespace {

using IntervalsByThread = std::unordered_map<std::int64_t, std::vector<TimeInterval>>;

void merge_all(IntervalsByThread& threads) {
  for (auto& [thread, intervals] : threads) {
    intervals = merge_intervals(std::move(intervals));
  }
}

const std::vector<TimeInterval>* of_thread(const IntervalsByThread& threads, std::int64_t thread) {
  const auto found = threads.find(thread);
  return found == threads.end() ? nullptr : &found->second;
}

}  // namespace

std::int32_t busiest_device(const TraceEvents& events) {
  std::map<std::int32_t, std::int64_t> counts;
  for (const DeviceOperation& operation : events.operations) {
    ++counts[operation.device];
  }
  const auto busiest =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return busiest == counts.end() ? -1 : busiest->first;
}

std::vector<BusySegment> busy_segments(const TraceEvents& events, std::int32_t device) {
  std::vector<BusySegment> segments;
  std::int64_t cursor_ns = 0;
  for (std::size_t row = 0; row < events.operations.size(); ++row) {
    const DeviceOperation& operation = events.operations[row];
    if (operation.device != device || !has_times(operation)) {
      continue;
    }
    const std::int64_t start_ns = std::max(operation.start_ns, cursor_ns);
    if (operation.end_ns <= start_ns) {
      continue;
    }
    segments.push_back(
        {.start_ns = start_ns, .end_ns = operation.end_ns, .operation_row = static_cast<std::int64_t>(row)});
    cursor_ns = operation.end_ns;
  }
  return segments;
}

std::vector<bool> first_of_launch(const TraceEvents& events) {
  std::vector<bool> first(events.operations.size(), true);
  LaunchSet seen;
  for (std::size_t row = 0; row < events.operations.size(); ++row) {
    const DeviceOperation& operation = events.operations[row];
    const bool graph = operation.graph_id != 0 || operation.graph_node_id != 0;
    if (!graph || !has_times(operation)) {
      continue;
    }
    first[row] = seen.insert(operation.process, operation.correlation);
  }
  return first;
}

GapCauses::GapCauses(const TraceEvents& events) : events_(events), first_(first_of_launch(events)) {
  for (const Wait& wait : events.waits) {
    if (wait.kind == WaitKind::stream_wait_event) {
      continue;  // The device waits, not the thread.
    }
    waits_[wait.thread].push_back({.start_ns = wait.start_ns, .end_ns = wait.end_ns});
  }
  for (const ApiCall& call : events.api_calls) {
    // A copy to pageable memory returns when it is done. A copy that does not wait covers the end of an operation only
    // by chance.
    if (call.kind != ApiKind::synchronize && call.kind != ApiKind::copy) {
      continue;
    }
    waits_[call.thread].push_back({.start_ns = call.start_ns, .end_ns = call.end_ns});
  }
  for (const Overhead& overhead : events.overheads) {
    if (overhead.kind == OverheadKind::command_buffer_full) {
      continue;
    }
    overheads_[overhead.thread].push_back({.start_ns = overhead.start_ns, .end_ns = overhead.end_ns});
  }
  for (const DeviceOperation& operation : events.operations) {
    if (operation.launched_before) {
      last_before_ = std::max(last_before_, operation.correlation);
    }
  }
  merge_all(waits_);
  merge_all(overheads_);
}

std::int64_t GapCauses::end_of_wait(std::int64_t thread, std::int64_t time_ns) const {
  const std::vector<TimeInterval>* waits = of_thread(waits_, thread);
  if (waits == nullptr) {
    return time_ns;
  }
  const auto wait = first_ending_after(*waits, time_ns);
  return wait != waits->end() && wait->start_ns <= time_ns ? wait->end_ns : time_ns;
}

void GapCauses::append(Gap piece, const std::vector<TimeInterval>* overheads, std::vector<Gap>& gaps) {
  const std::int64_t end_ns = piece.end_ns;
  const auto push = [&](std::int64_t until_ns, GapCause cause) {
    if (until_ns <= piece.start_ns) {
      return;
    }
    const bool goes_on = !gaps.empty() && gaps.back().cause == cause && gaps.back().end_ns == piece.start_ns &&
                         gaps.back().next_operation == piece.next_operation;
    if (goes_on) {
      gaps.back().end_ns = until_ns;
      piece.start_ns = until_ns;
      return;
    }
    Gap part = piece;
    part.end_ns = until_ns;
    part.cause = cause;
    gaps.push_back(part);
    piece.start_ns = until_ns;
  };
  if (overheads != nullptr) {
    for (auto overhead = first_ending_after(*overheads, piece.start_ns);
         overhead != overheads->end() && overhead->start_ns < end_ns; ++overhead) {
      push(overhead->start_ns, piece.cause);
      push(std::min(overhead->end_ns, end_ns), GapCause::tool);
    }
  }
  push(end_ns, piece.cause);
}

void GapCauses::explain(std::int64_t start_ns, std::int64_t end_ns, std::int64_t next_row,
                        std::vector<Gap>& gaps) const {
  const DeviceOperation& next = events_.operations[static_cast<std::size_t>(next_row)];
  Gap piece{.step = next.step,
            .device = next.device,
            .start_ns = start_ns,
            .end_ns = end_ns,
            .cause = GapCause::unknown,
            .next_operation = next_row};
  if (!first_[static_cast<std::size_t>(next_row)]) {
    piece.cause = GapCause::dependency;
    gaps.push_back(piece);
    return;
  }
  if (next.api_row == kNoRow) {
    // An operation that was launched before the capture was in the queue already, except for the last of them, whose
    // launch may not have returned.
    if (next.launched_before && next.correlation != last_before_) {
      piece.cause = GapCause::dependency;
    }
    gaps.push_back(piece);
    return;
  }
  const ApiCall& launch = events_.api_calls[static_cast<std::size_t>(next.api_row)];
  if (launch.end_ns <= start_ns) {
    piece.cause = GapCause::dependency;
    gaps.push_back(piece);
    return;
  }
  const std::vector<TimeInterval>* overheads = of_thread(overheads_, launch.thread);
  if (overheads == nullptr) {
    overheads = of_thread(overheads_, 0);
  }
  const auto append_until = [&](std::int64_t until_ns, GapCause cause, const std::vector<TimeInterval>* covered_by) {
    piece.end_ns = std::clamp(until_ns, piece.start_ns, end_ns);
    piece.cause = cause;
    if (piece.end_ns > piece.start_ns) {
      append(piece, covered_by, gaps);
    }
    piece.start_ns = piece.end_ns;
  };
  const std::int64_t waited_until_ns = end_of_wait(launch.thread, start_ns);
  const bool waited = waited_until_ns > start_ns && waited_until_ns <= launch.start_ns;
  if (waited) {
    append_until(waited_until_ns, GapCause::sync, overheads);
  }
  append_until(launch.start_ns, waited ? GapCause::host_after_sync : GapCause::dispatch, overheads);
  append_until(launch.end_ns, GapCause::launch_latency, overheads);
  // The call has returned: overheads of its thread delay nothing from here on.
  append_until(launch.end_ns + kLongestLaunchNs, GapCause::launch_latency, nullptr);
  append_until(end_ns, GapCause::unknown, nullptr);
}

}  // namespace decodelab
