// The same arithmetic as in engine/sampling/warpers.cpp, on [S, V]; on a CPU each row gets the same bits.
#include "variants/token_choice/batch_warpers.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace decodelab {
namespace {

constexpr double kDropped = -std::numeric_limits<double>::infinity();
constexpr double kNoMassBelow = -1;
constexpr double kNoMassReaches = 2;

/// Returns [rows, 1]: `value` of each row.
template <typename Element, typename Value>
at::Tensor column(std::span<const SamplingParameters> rows, at::ScalarType type, at::Device device, Value value) {
  at::Tensor host = at::empty({static_cast<std::int64_t>(rows.size()), 1}, type);
  std::ranges::transform(rows, host.mutable_data_ptr<Element>(), value);
  return host.to(device);
}

template <typename Value>
at::Tensor numbers(std::span<const SamplingParameters> rows, at::Device device, Value value) {
  return column<float>(rows, at::kFloat, device,
                       [&](const SamplingParameters& row) { return static_cast<float>(value(row)); });
}

at::Tensor drop_in_order(const at::Tensor& logits, const at::Tensor& order, const at::Tensor& dropped) {
  return logits.masked_fill(at::empty_like(dropped).scatter_(1, order, dropped), kDropped);
}

}  // namespace

BatchWarpers::BatchWarpers(std::span<const SamplingParameters> rows, at::Device device, KeepTypical keep_typical)
    : keep_typical_(std::move(keep_typical)) {
  if (std::ranges::any_of(rows, [](const SamplingParameters& row) { return row.temperature != 1; })) {
    temperature_ = numbers(rows, device, [](const SamplingParameters& row) { return row.temperature; });
  }
  if (std::ranges::any_of(rows, &SamplingParameters::has_top_k)) {
    largest_k_ = std::ranges::max_element(rows, {}, &SamplingParameters::top_k)->top_k;
    top_k_ = column<std::int64_t>(rows, at::kLong, device,
                                  [](const SamplingParameters& row) { return std::max<std::int64_t>(row.top_k, 1); });
    top_k_off_ = column<bool>(rows, at::kBool, device, [](const SamplingParameters& row) { return !row.has_top_k(); });
  }
  if (std::ranges::any_of(rows, &SamplingParameters::has_top_p)) {
    dropped_mass_ = numbers(
        rows, device, [](const SamplingParameters& row) { return row.has_top_p() ? 1 - row.top_p : kNoMassBelow; });
  }
  if (std::ranges::any_of(rows, &SamplingParameters::has_typical_p)) {
    typical_p_ = numbers(rows, device, [](const SamplingParameters& row) {
      return row.has_typical_p() ? row.typical_p : kNoMassReaches;
    });
  }
}

at::Tensor BatchWarpers::warp(const at::Tensor& logits) const {
  at::Tensor warped = temperature_ ? logits / *temperature_ : logits;
  if (top_k_) {
    warped = keep_top_k(warped);
  }
  if (dropped_mass_) {
    warped = keep_top_p(warped);
  }
  return typical_p_ ? keep_typical_(warped, *typical_p_) : warped;
}

at::Tensor BatchWarpers::keep_top_k(const at::Tensor& logits) const {
  const std::int64_t most = std::min(largest_k_, logits.size(1));
  const at::Tensor highest = std::get<0>(at::topk(logits, most, 1));
  const at::Tensor lowest_kept = highest.gather(1, top_k_->clamp_max(most) - 1).masked_fill_(*top_k_off_, kDropped);
  return logits.masked_fill(logits < lowest_kept, kDropped);
}

at::Tensor BatchWarpers::keep_top_p(const at::Tensor& logits) const {
  const auto [ascending, order] = at::sort(logits, /*stable=*/true, /*dim=*/1, /*descending=*/false);
  at::Tensor dropped = at::softmax(ascending, 1).cumsum(1) <= *dropped_mass_;
  dropped.select(1, -1).fill_(false);
  return drop_in_order(logits, order, dropped);
}

at::Tensor keep_typical_by_sorting(const at::Tensor& logits, const at::Tensor& typical_p) {
  const at::Tensor log_probs = at::log_softmax(logits, 1);
  // Minus the entropy. Without a negation: the operator tells whether another variant ran.
  const at::Tensor sum = (log_probs * log_probs.exp()).nan_to_num_(0.0).cumsum(1).narrow(1, -1, 1);
  const auto [distances, order] = at::sort((sum - log_probs).abs_(), /*stable=*/true, /*dim=*/1, /*descending=*/false);
  const at::Tensor mass = at::softmax(logits, 1).gather(1, order).cumsum(1);
  const at::Tensor last = (mass < typical_p).sum(1, /*keepdim=*/true).clamp_max_(logits.size(1) - 1);
  at::Tensor dropped = distances > distances.gather(1, last);
  dropped.select(1, 0).fill_(false);
  return drop_in_order(logits, order, dropped);
}

BatchPenalty::BatchPenalty(std::span<const SamplingParameters> rows, at::Device device)
    : penalty_(numbers(rows, device, [](const SamplingParameters& row) { return row.repetition_penalty; })) {}

at::Tensor BatchPenalty::penalize(const at::Tensor& logits, const at::Tensor& seen) const {
  return at::where(seen, at::where(logits < 0, logits * penalty_, logits / penalty_), logits);
}

}  // namespace decodelab
