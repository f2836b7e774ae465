// Looks the bias of each query and key up by their distance, in a table of all distances.
#include "engine/layers/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace decodelab {

std::int64_t relative_bucket(const RelativeBias& rule, std::int64_t distance, bool both_ways) {
  std::int64_t buckets = rule.buckets;
  std::int64_t first = 0;
  if (both_ways) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    distance = std::abs(distance);
  } else {
    distance = std::max<std::int64_t>(-distance, 0);
  }
  const std::int64_t exact = buckets / 2;
  if (distance < exact) {
    return first + distance;
  }
  const float share =
      std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(rule.most_distance) / static_cast<double>(exact))) *
      static_cast<float>(buckets - exact);
  return first + std::min(exact + static_cast<std::int64_t>(share), buckets - 1);
}

ScoreBias::ScoreBias(const RelativeBias& rule, const at::Tensor& weights, std::int64_t positions, bool both_ways)
    : positions_(positions),
      key_positions_(at::arange(positions, at::TensorOptions(at::kLong).device(weights.device()))) {
  std::vector<std::int64_t> buckets;
  for (std::int64_t distance = 1 - positions; distance < positions; ++distance) {
    buckets.push_back(relative_bucket(rule, distance, both_ways));
  }
  by_distance_ = weights.index_select(0, at::tensor(buckets, at::kLong).to(weights.device())).t().contiguous();
}

at::Tensor ScoreBias::of(const StepRows& rows, std::int64_t keys) const {
  if (rows.uniform() && rows.tokens() == 1) {
    return by_distance_.narrow(1, positions_ - 1 - rows.past().front(), keys).unsqueeze(1).unsqueeze(0);
  }
  return between(rows.padded(rows.position_ids()), keys);
}

at::Tensor ScoreBias::of_each_other(std::int64_t tokens) const {
  return between(key_positions_.narrow(0, 0, tokens).unsqueeze(0), tokens);
}

/// Positions of queries, [B, T], with keys from 0 on: [B, H, T, keys].
at::Tensor ScoreBias::between(const at::Tensor& queries, std::int64_t keys) const {
  const at::Tensor distances = key_positions_.narrow(0, 0, keys) - queries.unsqueeze(2);
  const at::Tensor biases = by_distance_.index_select(1, (distances + (positions_ - 1)).flatten());
  return biases.view({-1, distances.size(0), distances.size(1), keys}).transpose(0, 1);
}

}  // namespace decodelab
