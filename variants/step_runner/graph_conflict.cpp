// Says which other variants a recorded step can be combined with.
#include "variants/step_runner/graph_conflict.h"

#include "engine/plan.h"

namespace decodelab {
namespace {

/// Returns how a message names what is bound.
std::string name_of(const std::string& variant, const std::string& reference) {
  return variant.empty() ? reference : variant;
}

}  // namespace

std::string graph_conflict(const std::string& variant, GraphScope scope, const EnginePlan& plan) {
  if (const std::string& forward = plan.workspace.variant(); forward != "workspace-forward") {
    return variant + " records a step whose tensors stay where they are, and " +
           name_of(forward, "the reference's forward") + " makes new ones in each step: add workspace-forward";
  }
  if (scope == GraphScope::around_attention) {
    return "";
  }
  if (const std::string& growth = plan.kv_growth.variant(); growth != "kv-static" && growth != "kv-preallocated") {
    return variant + " records where keys and values are written, and " +
           name_of(growth, "the reference's concatenated cache") +
           " moves them as they grow: add kv-static or kv-preallocated";
  }
  // A recorded launch of another attention freezes the longest key length, the number of splits or a plan for a shape.
  if (const std::string& attention = plan.decode_attention.variant();
      !attention.empty() && attention != "split-kv-decode") {
    return variant + " freezes the launches of a step, and those of " + attention +
           " depend on the key length: use split-kv-decode or the reference's attention, or cuda-graph-partial";
  }
  if (const std::string& padding = plan.key_padding.variant(); !padding.empty()) {
    return variant + " shows attention whole buckets of keys, so that " + padding +
           " has no effect beside it: remove one of the two";
  }
  return "";
}

}  // namespace decodelab
