// Finds the edges of a capture by the correlations of each process.
#include "profiles/trace/capture.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace decodelab {
namespace {

struct Process {
  std::uint32_t first_call = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t last_operation = 0;
  std::unordered_set<std::uint32_t> calls;
  std::unordered_set<std::uint32_t> operations;
};

}  // namespace

bool is_launch(const ApiCall& call) {
  return call.kind == ApiKind::launch || call.kind == ApiKind::graph_launch || call.kind == ApiKind::copy ||
         call.kind == ApiKind::set;
}

void mark_edges(TraceEvents& events) {
  TraceSession& session = events.session;
  if (!session.foreign || events.api_calls.empty()) {
    return;
  }
  std::unordered_map<std::int64_t, Process> processes;
  for (const ApiCall& call : events.api_calls) {
    Process& process = processes[call.process];
    process.first_call = std::min(process.first_call, call.correlation);
    process.calls.insert(call.correlation);
  }
  for (const DeviceOperation& operation : events.operations) {
    Process& process = processes[operation.process];
    process.last_operation = std::max(process.last_operation, operation.correlation);
    process.operations.insert(operation.correlation);
  }
  session.launched_before = 0;
  session.outlasting = 0;
  for (DeviceOperation& operation : events.operations) {
    const Process& process = processes[operation.process];
    operation.launched_before =
        operation.correlation < process.first_call && !process.calls.contains(operation.correlation);
    session.launched_before += operation.launched_before ? 1 : 0;
  }
  for (ApiCall& call : events.api_calls) {
    Process& process = processes[call.process];
    call.outlasts = is_launch(call) && call.correlation > process.last_operation;
    // A call of the driver inside of a call of the runtime is the same launch.
    session.outlasting += call.outlasts && process.operations.insert(call.correlation).second ? 1 : 0;
  }
}

}  // namespace decodelab
