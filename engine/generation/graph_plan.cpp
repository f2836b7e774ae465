// Buckets, parts and rules of recorded steps.
#include "engine/generation/graph_plan.h"

#include "engine/plan.h"
#include "engine/round_up.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace decodelab {
namespace {

/// How a sentence calls what is bound.
std::string name_of(const std::string& variant, const std::string& reference) {
  return variant.empty() ? reference : variant;
}

}  // namespace

std::int64_t GraphBuckets::rows(std::int64_t batch_size) const {
  const auto filled = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(batch_size)));
  return filled <= most_rows ? filled : batch_size;
}

std::int64_t GraphBuckets::keys(std::int64_t needed, std::int64_t max_tokens) const {
  return std::max(needed, std::min(rounded_up(needed, keys_multiple), max_tokens));
}

std::vector<std::int64_t> GraphBuckets::all_keys(std::int64_t needed, std::int64_t max_tokens) const {
  std::vector<std::int64_t> all;
  for (std::int64_t next = needed; next <= max_tokens; next = all.back() + 1) {
    all.push_back(keys(next, max_tokens));
  }
  std::ranges::reverse(all);
  return all;
}

std::vector<GraphSegment> segments_around_attention(std::int64_t layers) {
  std::vector<GraphSegment> segments;
  for (std::int64_t part = 0; part <= layers; ++part) {
    GraphSegment segment;
    if (part > 0) {
      segment.after = part - 1;
    }
    if (part < layers) {
      segment.before = part;
    }
    segments.push_back(segment);
  }
  return segments;
}

std::int64_t graph_launches_of_step(GraphScope scope, std::int64_t layers) {
  return scope == GraphScope::whole_step ? 1 : layers + 1;
}

bool AddressWatch::moved(std::vector<const void*> addresses) {
  const bool others = !last_.empty() && last_ != addresses;
  last_ = std::move(addresses);
  return others;
}

std::string graph_conflict(const std::string& variant, GraphScope scope, const EnginePlan& plan) {
  if (const std::string& forward = plan.forward.variant(); forward != "workspace-forward") {
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
  // The longest key length, the number of splits or a plan for a shape is frozen in a recorded launch of the others.
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
