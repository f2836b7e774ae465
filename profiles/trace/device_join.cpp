// Joins operations with the calls that launched them, by process and correlation, and with their graph nodes.
#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "profiles/trace/join.h"

namespace decodelab {
namespace {

/// A graph is cloned when it is instantiated, and again when it is a child; a longer chain of clones is a cycle.
constexpr int kMostClonings = 8;

struct CallKey {
  std::int64_t process = 0;
  std::uint32_t correlation = 0;
  std::int64_t row = 0;

  auto operator<=>(const CallKey&) const = default;
};

std::vector<CallKey> sorted_keys(const std::vector<ApiCall>& calls) {
  std::vector<CallKey> keys;
  keys.reserve(calls.size());
  for (std::size_t row = 0; row < calls.size(); ++row) {
    keys.push_back(
        {.process = calls[row].process, .correlation = calls[row].correlation, .row = static_cast<std::int64_t>(row)});
  }
  if (!std::is_sorted(keys.begin(), keys.end())) {
    std::sort(keys.begin(), keys.end());
  }
  return keys;
}

bool can_launch(ApiKind call, DeviceOperationKind operation) {
  switch (call) {
    case ApiKind::launch: return operation == DeviceOperationKind::kernel;
    case ApiKind::copy: return operation == DeviceOperationKind::copy;
    case ApiKind::set: return operation == DeviceOperationKind::set;
    case ApiKind::graph_launch:
    case ApiKind::other: return true;
    case ApiKind::synchronize:
    case ApiKind::allocate: return false;
  }
  return false;
}

/// Returns the call that launched the operation: that of the runtime where a call of the driver inside of it has the
/// same correlation.
std::int64_t launching_call(const std::vector<CallKey>& keys, const std::vector<ApiCall>& calls,
                            const DeviceOperation& operation) {
  const CallKey first{.process = operation.process, .correlation = operation.correlation, .row = 0};
  std::int64_t found = kNoRow;
  for (auto key = std::lower_bound(keys.begin(), keys.end(), first);
       key != keys.end() && key->process == first.process && key->correlation == first.correlation; ++key) {
    const ApiCall& call = calls[static_cast<std::size_t>(key->row)];
    if (!can_launch(call.kind, operation.kind)) {
      continue;
    }
    if (!call.driver) {
      return key->row;
    }
    if (found == kNoRow) {
      found = key->row;
    }
  }
  return found;
}

/// Finds where in the engine captured operations come from. A clone without layer and stage has those of its original.
class NodeMap {
 public:
  explicit NodeMap(const std::vector<GraphNode>& nodes) {
    for (const GraphNode& node : nodes) {
      by_graph_.emplace(std::pair(node.graph_id, node.node_id), &node);
      const auto [place, is_new] = by_node_.emplace(node.node_id, &node);
      if (!is_new && node.original_node_id == 0) {
        place->second = &node;
      }
    }
  }

  const GraphNode* find(std::uint64_t graph_id, std::uint64_t node_id) const {
    if (by_graph_.empty()) {
      return nullptr;
    }
    const auto exact = by_graph_.find(std::pair(graph_id, node_id));
    const GraphNode* node = exact != by_graph_.end() ? exact->second : by_node_id(node_id);
    for (int i = 0; i < kMostClonings && node != nullptr && says_nothing(*node) && node->original_node_id != 0; ++i) {
      node = by_node_id(node->original_node_id);
    }
    return node == nullptr || says_nothing(*node) ? nullptr : node;
  }

 private:
  static bool says_nothing(const GraphNode& node) { return node.layer == kNoLayer && node.stage == Stage::other; }

  const GraphNode* by_node_id(std::uint64_t node_id) const {
    const auto found = by_node_.find(node_id);
    return found == by_node_.end() ? nullptr : found->second;
  }

  std::map<std::pair<std::uint64_t, std::uint64_t>, const GraphNode*> by_graph_;
  std::unordered_map<std::uint64_t, const GraphNode*> by_node_;
};

void place_by_call(const TraceEvents& events, const std::vector<std::int64_t>& spans_of_calls,
                   DeviceOperation& operation) {
  const auto call_row = static_cast<std::size_t>(operation.api_row);
  operation.step = kNoStep;
  operation.layer = kNoLayer;
  operation.stage = Stage::other;
  if (spans_of_calls[call_row] != kNoRow) {
    const HostSpan& span = events.spans[static_cast<std::size_t>(spans_of_calls[call_row])];
    operation.step = span.step;
    operation.layer = span.layer;
    operation.stage = span.stage;
  }
  if (operation.step != kNoStep) {
    return;
  }
  const std::int64_t step = step_row_at(events.steps, events.api_calls[call_row].start_ns);
  if (step != kNoRow) {
    operation.step = events.steps[static_cast<std::size_t>(step)].index;
  }
}

using LaunchKey = std::tuple<std::int64_t, std::uint32_t>;

/// Returns the step of each launch, with launches given in their order to the steps that counted them; empty if the
/// counts do not add up.
std::map<LaunchKey, std::int32_t> deal_out(const std::vector<Step>& steps, const std::vector<LaunchKey>& launches,
                                           std::int64_t Step::* count) {
  std::map<LaunchKey, std::int32_t> dealt;
  std::size_t next = 0;
  for (const Step& step : steps) {
    for (std::int64_t i = 0; i < step.*count; ++i, ++next) {
      if (next == launches.size()) {
        return {};
      }
      dealt.emplace(launches[next], step.index);
    }
  }
  if (next != launches.size()) {
    return {};
  }
  return dealt;
}

/// Places operations without calls: the n-th launch belongs to the step that counted it, since correlations rise in the
/// order of launching.
void place_by_counts(TraceEvents& events) {
  std::vector<LaunchKey> plain;
  std::vector<LaunchKey> replays;
  for (const DeviceOperation& operation : events.operations) {
    if (operation.step != kNoStep) {
      return;  // The collector filled in the steps already.
    }
    const bool graph = operation.graph_id != 0 || operation.kind == DeviceOperationKind::graph;
    (graph ? replays : plain).emplace_back(operation.process, operation.correlation);
  }
  std::sort(plain.begin(), plain.end());
  std::sort(replays.begin(), replays.end());
  replays.erase(std::unique(replays.begin(), replays.end()), replays.end());
  if (std::adjacent_find(plain.begin(), plain.end()) != plain.end()) {
    return;
  }
  const auto plain_steps = deal_out(events.steps, plain, &Step::launches);
  const auto replay_steps = deal_out(events.steps, replays, &Step::graph_launches);
  if (plain_steps.size() != plain.size() || replay_steps.size() != replays.size()) {
    return;
  }
  for (DeviceOperation& operation : events.operations) {
    const LaunchKey key(operation.process, operation.correlation);
    const bool graph = operation.graph_id != 0 || operation.kind == DeviceOperationKind::graph;
    operation.step = graph ? replay_steps.at(key) : plain_steps.at(key);
  }
}

/// Puts each operation into the step that it starts in, for steps that are pieces of the device's time.
void place_by_time(TraceEvents& events) {
  for (DeviceOperation& operation : events.operations) {
    const std::int64_t step = step_row_at(events.steps, operation.start_ns);
    operation.step = step == kNoRow ? kNoStep : events.steps[static_cast<std::size_t>(step)].index;
  }
}

}  // namespace

void join_operations(TraceEvents& events, const std::vector<std::int64_t>& spans_of_calls) {
  const std::vector<CallKey> keys = sorted_keys(events.api_calls);
  const NodeMap nodes(events.nodes);
  for (DeviceOperation& operation : events.operations) {
    operation.api_row = launching_call(keys, events.api_calls, operation);
    if (operation.api_row != kNoRow) {
      place_by_call(events, spans_of_calls, operation);
    }
    if (operation.graph_node_id == 0) {
      continue;
    }
    if (const GraphNode* node = nodes.find(operation.graph_id, operation.graph_node_id)) {
      operation.layer = node->layer;
      operation.stage = node->stage;
    }
  }
  if (events.api_calls.empty() && events.session.launches_counted) {
    place_by_counts(events);
  }
  if (events.session.steps_by_time) {
    place_by_time(events);
  }
}

}  // namespace decodelab
