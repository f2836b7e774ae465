// Norms of heads, rotary positions and the write into the cache in one pass over what the product left.
#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/kernels/device_element.h"
#include "engine/kernels/elementwise/rotary_rows.cuh"
#include "engine/kernels/elementwise/rotary_rows.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/rotary.h"
#include "engine/layers/step_rows.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Elements per task: fewer are not worth another thread.
constexpr std::int64_t kElementsOfATask = 16384;

class FusedRotary final : public Rotary {
 public:
  explicit FusedRotary(const RotaryWeights& weights)
      : shape_(weights.shape), table_(weights.table), isa_(best_cpu_isa()) {
    if (weights.query_norm) {
      kind_ = weights.query_norm->kind;
      epsilon_ = static_cast<float>(weights.query_norm->epsilon);
      query_norm_ = weights.query_norm->weight.contiguous();
      key_norm_ = weights.key_norm->weight.contiguous();
    }
  }

  Projected forward(const Projected& projected, const ForwardStep& step) const override {
    const at::Tensor& positions = step.rows.position_ids();
    turn(projected.query, shape_.heads, query_norm_, positions, {});
    if (step.room == nullptr) {
      turn(projected.key_value, shape_.kv_heads, key_norm_, positions, {});
      return projected;
    }
    const KvRoom& room = *step.room;
    turn(projected.key_value, shape_.kv_heads, key_norm_, positions,
         {.keys = room.keys.mutable_data_ptr(),
          .values = room.values.mutable_data_ptr(),
          .row_stride = room.keys.stride(0),
          .slot_stride = room.keys.stride(1),
          .tokens = projected.key_value.size(1)});
    return {.query = projected.query, .key_value = {}};
  }
  bool writes_cache() const override { return true; }

 private:
  /// Overwrites the first `heads` heads of each token of `x`, [B, T, ..], a part of what the product gave, or writes
  /// them and the values behind them into a cache.
  void turn(const at::Tensor& x, std::int64_t heads, const at::Tensor& norm, const at::Tensor& positions,
            const CacheSlots& cache) const {
    const std::int64_t tokens = x.size(0) * x.size(1);
    // Positions of rows of one length stand there once, with a stride of 0 where they are expanded.
    const at::Tensor flat = positions.reshape({-1}).contiguous();
    if (!x.is_cpu()) {
      turn_on_device(x, heads, norm, flat, cache);
      return;
    }
    const RotaryRows rows{.dtype = element_type(x.scalar_type()),
                          .heads = heads,
                          .head_dim = shape_.head_dim,
                          .dims = table_ ? table_->dims : 0,
                          .rows = x.mutable_data_ptr(),
                          .stride = x.stride(1),
                          .positions = flat.const_data_ptr<std::int64_t>(),
                          .position_count = flat.numel(),
                          .cosine = table_ ? table_->cosine.const_data_ptr() : nullptr,
                          .sine = table_ ? table_->sine.const_data_ptr() : nullptr,
                          .norm = norm.defined() ? norm.const_data_ptr() : nullptr,
                          .weight_offset = kind_ == NormKind::rms_plus_one ? 1.0f : 0.0f,
                          .epsilon = epsilon_,
                          .cache = cache};
    at::parallel_for(0, tokens, std::max<std::int64_t>(1, kElementsOfATask / (heads * shape_.head_dim)),
                     [&](std::int64_t first, std::int64_t last) { turn_rows(rows, first, last, isa_); });
  }

  void turn_on_device([[maybe_unused]] const at::Tensor& x, [[maybe_unused]] std::int64_t heads,
                      [[maybe_unused]] const at::Tensor& norm, [[maybe_unused]] const at::Tensor& positions,
                      [[maybe_unused]] const CacheSlots& cache) const {
#ifdef DECODELAB_HAS_CUDA
    const DeviceRotary rotary{.element = device_element(x.scalar_type()),
                              .tokens = x.size(0) * x.size(1),
                              .heads = heads,
                              .head_dim = shape_.head_dim,
                              .dims = table_ ? table_->dims : 0,
                              .rows = x.mutable_data_ptr(),
                              .stride = x.stride(1),
                              .positions = positions.const_data_ptr<std::int64_t>(),
                              .position_count = positions.numel(),
                              .cosine = table_ ? table_->cosine.const_data_ptr() : nullptr,
                              .sine = table_ ? table_->sine.const_data_ptr() : nullptr,
                              .norm = norm.defined() ? norm.const_data_ptr() : nullptr,
                              .weight_offset = kind_ == NormKind::rms_plus_one ? 1.0f : 0.0f,
                              .epsilon = epsilon_,
                              .cache = cache};
    on_stream_of(x, [&](CUstream_st* stream) { launch_rotary_rows(rotary, stream); });
#else
    throw std::invalid_argument("fused-rotary on a GPU needs a build with CUDA");
#endif
  }

  AttentionShape shape_;
  std::shared_ptr<const RotaryTable> table_;
  NormKind kind_ = NormKind::rms;
  float epsilon_ = 0;
  at::Tensor query_norm_;  ///< Undefined where heads are not normed.
  at::Tensor key_norm_;
  CpuIsa isa_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.rotary.bind("fused-rotary", [](const RotaryWeights& weights) { return std::make_unique<FusedRotary>(weights); });
}

/// Expects a count of 0 for what the reference rotates halves with: an operator that was not called has no counter.
std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return counted.config.rotary.empty() ? std::vector<Expectation>{} : std::vector<Expectation>{{"op.aten::neg", 0}};
}

std::string unsupported(const RunsOn& where) {
  const bool turns = !where.config.rotary.empty() || where.config.qk_norm;
  if (!turns || where.device != "cpu") {
    return "";  // there is nothing to do, or the kernel of a GPU does it for heads of any size
  }
  return where.config.head_dim > kMostRotaryHeadDim ? "its kernel takes heads of at most 256 elements" : "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "fused-rotary",
    .summary = "Queries and keys are normed, turned by their positions and written into the cache in one pass.",
    .source = "Su et al. 2021 (arXiv:2104.09864); vLLM's rotary_embedding and fused_qk_norm_rope kernels",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
