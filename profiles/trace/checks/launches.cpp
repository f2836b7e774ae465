// I3: each operation belongs to one launch. I4: none starts before it; a negative delay is a wrong clock, never clipped
// to zero.
#include <algorithm>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "profiles/trace/capture.h"
#include "profiles/trace/checks/check.h"

namespace decodelab {
namespace {

/// Two calls with one correlation are one launch if the driver's runs inside of the runtime's.
bool is_inner_call(const ApiCall& outer, const ApiCall& inner) {
  return !outer.driver && inner.driver && outer.thread == inner.thread && outer.start_ns <= inner.start_ns &&
         inner.end_ns <= outer.end_ns;
}

void find_repeated_calls(const TraceEvents& events, NamedRows& rows) {
  std::vector<const ApiCall*> calls;
  for (const ApiCall& call : events.api_calls) {
    if (is_launch(call)) {
      calls.push_back(&call);
    }
  }
  std::stable_sort(calls.begin(), calls.end(), [](const ApiCall* a, const ApiCall* b) {
    return std::tie(a->process, a->correlation) < std::tie(b->process, b->correlation);
  });
  for (std::size_t i = 1; i < calls.size(); ++i) {
    const ApiCall& first = *calls[i - 1];
    const ApiCall& second = *calls[i];
    const bool same = first.process == second.process && first.correlation == second.correlation;
    if (!same || is_inner_call(first, second) || is_inner_call(second, first)) {
      continue;
    }
    rows.add([&] { return fmt::format("two calls with correlation {}", second.correlation); });
  }
}

/// An operation in one replay of a graph.
struct NodeRun {
  std::int64_t api_row = kNoRow;
  std::uint64_t graph_id = 0;
  std::uint64_t node_id = 0;
  const DeviceOperation* operation = nullptr;

  bool operator<(const NodeRun& other) const {
    return std::tie(api_row, graph_id, node_id) < std::tie(other.api_row, other.graph_id, other.node_id);
  }
};

void find_repeated_operations(const CheckInput& input, NamedRows& rows) {
  const TraceEvents& events = input.events();
  std::vector<bool> taken(events.api_calls.size(), false);
  std::vector<NodeRun> runs;
  const auto add = [&](const DeviceOperation& operation, const char* what) {
    rows.add([&] {
      return fmt::format("{} (correlation {}): {}", name_of(input.trace, operation.name), operation.correlation, what);
    });
  };
  for (const DeviceOperation& operation : events.operations) {
    if (operation.launched_before) {
      continue;  // Check I19 reports it.
    }
    // nsys writes several rows for one large copy.
    const bool may_repeat = events.session.foreign && operation.kind != DeviceOperationKind::kernel;
    if (operation.api_row == kNoRow) {
      add(operation, "no launch in its process");
    } else if (operation.graph_id == 0 && !may_repeat) {
      std::vector<bool>::reference is_taken = taken[static_cast<std::size_t>(operation.api_row)];
      if (is_taken) {
        add(operation, "its launch has another operation");
      }
      is_taken = true;
    } else if (operation.graph_node_id != 0) {
      runs.push_back({.api_row = operation.api_row,
                      .graph_id = operation.graph_id,
                      .node_id = operation.graph_node_id,
                      .operation = &operation});
    }
  }
  std::sort(runs.begin(), runs.end());
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (!(runs[i - 1] < runs[i])) {
      add(*runs[i].operation, "its graph node ran twice in one replay");
    }
  }
}

/// Finds kernels that were launched inside of a foreign capture and were not recorded. Launches into a graph that is
/// being captured run nothing, so a trace with graphs is not checked.
void find_missing_operations(const TraceEvents& events, NamedRows& rows) {
  if (!events.session.foreign) {
    return;
  }
  std::unordered_set<std::uint32_t> recorded;
  for (const DeviceOperation& operation : events.operations) {
    recorded.insert(operation.correlation);
  }
  std::vector<const ApiCall*> missing;
  for (const ApiCall& call : events.api_calls) {
    const std::string& name = events.strings.text(call.name);
    if (call.kind == ApiKind::graph_launch || name.find("BeginCapture") != std::string::npos) {
      return;
    }
    const bool lost = call.kind == ApiKind::launch && !call.driver && !call.outlasts && call.result == 0 &&
                      !recorded.contains(call.correlation);
    if (lost) {
      missing.push_back(&call);
    }
  }
  for (const ApiCall* call : missing) {
    rows.add([&] {
      return fmt::format("{} (correlation {}): no operation", events.strings.text(call->name), call->correlation);
    });
  }
}

}  // namespace

CheckResult check_launch_of_each(const CheckInput& input) {
  const TraceEvents& events = input.events();
  if (events.operations.empty()) {
    return not_applicable("no device operation was recorded");
  }
  if (events.api_calls.empty()) {
    return not_applicable("calls are recorded at tier 2 only");
  }
  NamedRows rows;
  find_repeated_calls(events, rows);
  find_repeated_operations(input, rows);
  find_missing_operations(events, rows);
  CheckResult result{.value = static_cast<double>(rows.count())};
  result.evidence =
      counted(static_cast<std::int64_t>(events.operations.size()) - events.session.launched_before, "operation") +
      ", each with its launch";
  if (rows.count() > 0) {
    result.status = CheckStatus::failed;
    result.evidence = fmt::format("{}: {}", counted(rows.count(), "wrong pair"), rows.text());
  }
  return result;
}

CheckResult check_launch_before_start(const CheckInput& input) {
  const TraceEvents& events = input.events();
  NamedRows rows;
  std::int64_t least_ns = 0;
  std::int64_t pairs = 0;
  for (const DeviceOperation& operation : events.operations) {
    if (operation.api_row == kNoRow || !has_times(operation)) {
      continue;
    }
    const ApiCall& call = events.api_calls[static_cast<std::size_t>(operation.api_row)];
    if (call.start_ns <= 0) {
      continue;
    }
    const std::int64_t delay_ns = operation.start_ns - call.start_ns;
    least_ns = pairs == 0 ? delay_ns : std::min(least_ns, delay_ns);
    ++pairs;
    if (delay_ns >= -kClockToleranceNs) {
      continue;
    }
    rows.add([&] { return fmt::format("{} by {}", name_of(input.trace, operation.name), time_text(-delay_ns)); });
  }
  if (pairs == 0) {
    return not_applicable("no operation has a launch to compare with");
  }
  CheckResult result{.value = static_cast<double>(least_ns),
                     .limit = static_cast<double>(-kClockToleranceNs),
                     .evidence = fmt::format("the shortest of {} is {}", counted(pairs, "delay"), time_text(least_ns))};
  if (rows.count() > 0) {
    result.status = CheckStatus::failed;
    result.evidence =
        fmt::format("{} before the launch, so the clocks differ: {}", counted(rows.count(), "start"), rows.text());
  }
  return result;
}

}  // namespace decodelab
