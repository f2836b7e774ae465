// Prefill attention by our own kernels on tiles of 32 keys, which read each key once for all the heads that share it
// and skip what no query sees.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/kernels/attention/decode_attention.h"
#include "engine/kernels/attention/prefill_attention.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/attention.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "variants/prefill_attention/sdpa_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "tile-prefill";

/// What computes the attention of a prompt.
enum class Way {
  tiles,      ///< Blocks of 32 by 32 in bf16, by tiles or dot products.
  lanes,      ///< Sixteen queries at a time in registers.
  elsewhere,  ///< The fused kernel of libtorch.
};

/// Chooses the fastest way for a dtype; attention with a bias, or over all keys, is computed elsewhere.
Way way_for(ElementType dtype, std::int64_t head_dim, bool cpu) {
  if (cpu && dtype == ElementType::bfloat16 && has_prefill_attention()) {
    return Way::tiles;
  }
  return cpu && head_dim <= kMostHeadDim && best_cpu_isa() >= CpuIsa::avx2 ? Way::lanes : Way::elsewhere;
}

class TilePrefill final : public Attention {
 public:
  explicit TilePrefill(const AttentionShape& shape)
      : shape_(shape), elsewhere_(make_sdpa_attention(shape, SdpaKernel::flash, kName)) {}

  at::Tensor forward(const AttentionCall& call) const override {
    const ElementType dtype = element_type(call.query.scalar_type());
    const Way way = way_for(dtype, shape_.head_dim, call.query.is_cpu());
    if (way == Way::elsewhere || call.bias != nullptr || call.rows.sees_all_keys()) {
      return elsewhere_->forward(call);
    }
    const at::Tensor query = call.query.stride(2) == 1 ? call.query : call.query.contiguous();
    // The kernels need a token's elements to be contiguous, and keys and values to have the same strides.
    const bool as_they_are = call.keys.stride(2) == 1 && call.keys.strides() == call.values.strides();
    const at::Tensor keys = as_they_are ? call.keys : call.keys.contiguous();
    const at::Tensor values = as_they_are ? call.values : call.values.contiguous();
    const at::Tensor out = call.workspace.allocate({query.size(0), query.size(1), query.size(2)}, query.options());
    PrefillAttention attention = shape_of(dtype, query.size(0), query.size(1), call.rows.keys());
    attention.query = query.const_data_ptr();
    attention.query_row_stride = query.stride(0);
    attention.query_token_stride = query.stride(1);
    attention.keys = keys.const_data_ptr();
    attention.values = values.const_data_ptr();
    attention.row_stride = keys.stride(0);
    attention.token_stride = keys.stride(1);
    attention.past = call.rows.past().data();
    attention.added = call.rows.added().data();
    attention.out = out.mutable_data_ptr();
    attention.window = call.window;
    if (way == Way::lanes) {
      at::parallel_for(0, lane_items(attention), 1, [&](std::int64_t first, std::int64_t last) {
        attend_in_lanes(attention, first, last, best_cpu_isa());
      });
      return out;
    }
    const at::Tensor packed = call.workspace.allocate({packed_key_bytes(attention)}, query.options().dtype(at::kByte));
    attention.packed = packed.mutable_data_ptr();
    at::parallel_for(0, pack_items(attention), 1,
                     [&](std::int64_t first, std::int64_t last) { pack_keys(attention, first, last); });
    at::parallel_for(0, query_items(attention), 1,
                     [&](std::int64_t first, std::int64_t last) { attend_queries(attention, first, last); });
    return out;
  }

  std::int64_t workspace_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t keys,
                               std::int64_t element_bytes) const override {
    const PrefillAttention attention = shape_of(ElementType::bfloat16, batch_size, tokens, keys);
    const std::int64_t in_tiles = packed_key_bytes(attention) + at::get_num_threads() * score_bytes(attention) +
                                  2 * batch_size * tokens * shape_.query_width() * element_bytes;
    return std::max(in_tiles, elsewhere_->workspace_bytes(batch_size, tokens, keys, element_bytes));
  }

 private:
  PrefillAttention shape_of(ElementType dtype, std::int64_t batch_size, std::int64_t tokens, std::int64_t keys) const {
    PrefillAttention attention{};
    attention.dtype = dtype;
    attention.batch_size = batch_size;
    attention.tokens = tokens;
    attention.kv_heads = shape_.kv_heads;
    attention.shared_heads = shape_.shared_heads();
    attention.head_dim = shape_.head_dim;
    attention.scale = static_cast<float>(shape_.scale);
    attention.most_keys = keys;
    return attention;
  }

  AttentionShape shape_;
  std::unique_ptr<Attention> elsewhere_;
};

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != Phase::prefill) {
    return {};
  }
  const bool cpu = counted.device == "cpu";
  if (way_for(counted.dtype, counted.config.head_dim, cpu) != Way::elsewhere && !counted.config.relative_bias) {
    // Operators that were not called have no counter: the fused kernel that other devices use, and the reference's
    // products.
    return {{sdpa_operator(SdpaKernel::flash, cpu), 0}, {"op.aten::baddbmm", 0}};
  }
  return {{sdpa_operator(SdpaKernel::flash, cpu), fused_attention_calls(counted) * counted.steps}};
}

Variant described() {
  Variant variant = sdpa_variant(
      {.name = kName,
       .phase = Phase::prefill,
       .kernel = SdpaKernel::flash,
       .summary =
           "Prefill attention over 32 keys at a time: in bf16 with 32 queries, on a processor's tiles (AMX) or by its "
           "dot products (AVX-512 BF16); else with sixteen queries in registers; on a GPU flash-prefill's kernel.",
       .source = "Shazeer 2019 (arXiv:1911.02150), all heads of a key together; Intel SDM 1, chapter 18"});
  variant.expects = expects;
  variant.apply = [](EnginePlan& plan, const Parameters&) {
    plan.prefill_attention.bind(
        kName, [](const AttentionShape& shape, const SoftmaxFactory&) { return std::make_unique<TilePrefill>(shape); });
  };
  return variant;
}

[[maybe_unused]] const bool registered = register_variant(described());

}  // namespace
}  // namespace decodelab
