// Looks the bias of each query and key up by their distance.
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

// From the most distance on, a bucket holds all.
ScoreBias::ScoreBias(const RelativeBias& rule, const at::Tensor& weights, bool both_ways)
    : farthest_(rule.most_distance) {
  std::vector<std::int64_t> buckets;
  for (std::int64_t distance = -farthest_; distance <= farthest_; ++distance) {
    buckets.push_back(relative_bucket(rule, distance, both_ways));
  }
  by_distance_ = weights.index_select(0, at::tensor(buckets, at::kLong).to(weights.device()));
}

at::Tensor ScoreBias::of(const StepRows& rows, std::int64_t keys) const {
  const at::Tensor& positions = rows.position_ids();
  return of_distances(at::arange(keys, positions.options()) - positions.unsqueeze(2));
}

at::Tensor ScoreBias::of_each_other(std::int64_t tokens) const {
  const at::Tensor positions = at::arange(tokens, at::TensorOptions(at::kLong).device(by_distance_.device()));
  return of_distances((positions - positions.unsqueeze(1)).unsqueeze(0));
}

/// [B, T, L] -> [B, H, T, L]
at::Tensor ScoreBias::of_distances(const at::Tensor& distances) const {
  const at::Tensor index = distances.clamp(-farthest_, farthest_) + farthest_;
  return at::embedding(by_distance_, index).permute({0, 3, 1, 2});
}

}  // namespace decodelab
