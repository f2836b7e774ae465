// The plain implementation of the warpers: each takes one row and returns a new one.
#include "engine/sampling/warpers.h"

#include <algorithm>
#include <limits>

#include "engine/tensor.h"

namespace decodelab {
namespace {

constexpr double kDropped = -std::numeric_limits<double>::infinity();

at::Tensor keep_top_k(const at::Tensor& logits, std::int64_t k) {
  const at::Tensor highest = std::get<0>(at::topk(logits, std::min(k, logits.size(0))));
  return logits.masked_fill(logits < highest[-1], kDropped);
}

/// Drops the tokens where `dropped` ([V] bool, in the order of `order`) is true.
at::Tensor drop_in_order(const at::Tensor& logits, const at::Tensor& order, const at::Tensor& dropped) {
  return logits.masked_fill(at::empty_like(dropped).scatter_(0, order, dropped), kDropped);
}

at::Tensor keep_top_p(const at::Tensor& logits, double p) {
  const auto [ascending, order] = at::sort(logits, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  at::Tensor dropped = at::softmax(ascending, 0).cumsum(0) <= 1 - p;
  dropped[-1].fill_(false);
  return drop_in_order(logits, order, dropped);
}

at::Tensor keep_typical_p(const at::Tensor& logits, double p) {
  const at::Tensor log_probs = at::log_softmax(logits, 0);
  // A token of probability 0 adds 0, though 0 * -infinity would be NaN.
  const at::Tensor entropy = -(log_probs * log_probs.exp()).nan_to_num(0.0).cumsum(0)[-1];
  const auto [distances, order] =
      at::sort((-log_probs - entropy).abs(), /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor mass = at::softmax(logits, 0).gather(0, order).cumsum(0);
  // After rounding, the whole mass may lie below p.
  const std::int64_t last = std::min((mass < p).sum().item<std::int64_t>(), logits.size(0) - 1);
  at::Tensor dropped = distances > distances[last];
  dropped[0].fill_(false);
  return drop_in_order(logits, order, dropped);
}

}  // namespace

at::Tensor penalize_row(const at::Tensor& logits, const at::Tensor& seen, const SamplingParameters& row) {
  const double penalty = row.repetition_penalty;
  return at::where(seen, at::where(logits < 0, logits * penalty, logits / penalty), logits);
}

at::Tensor warp_row(const at::Tensor& logits, const SamplingParameters& row) {
  at::Tensor warped = logits;
  if (row.temperature != 1) {
    warped = warped / row.temperature;
  }
  if (row.has_top_k()) {
    warped = keep_top_k(warped, row.top_k);
  }
  if (row.has_top_p()) {
    warped = keep_top_p(warped, row.top_p);
  }
  if (row.has_typical_p()) {
    warped = keep_typical_p(warped, row.typical_p);
  }
  return warped;
}

}  // namespace decodelab
