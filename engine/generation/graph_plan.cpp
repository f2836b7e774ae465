// Buckets and parts of recorded steps.
#include "engine/generation/graph_plan.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/round_up.h"

namespace decodelab {
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

}  // namespace decodelab
