// Prefill attention by our own kernel on tiles of 32 by 32, which reads each key once for all the heads that share it
// and skips what no query sees.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/kernels/attention/prefill_attention.h"
#include "engine/layers/attention.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "variants/prefill_attention/sdpa_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "tile-prefill";

bool runs_here(ElementType dtype, bool cpu) { return cpu && dtype == ElementType::bfloat16 && has_prefill_attention(); }

class TilePrefill final : public Attention {
 public:
  explicit TilePrefill(const AttentionShape& shape)
      : shape_(shape), elsewhere_(make_sdpa_attention(shape, SdpaKernel::flash, kName)) {}

  at::Tensor forward(const AttentionCall& call) const override {
    const bool bf16 = call.query.scalar_type() == at::kBFloat16;
    if (!runs_here(bf16 ? ElementType::bfloat16 : ElementType::float32, call.query.is_cpu()) || call.bias != nullptr ||
        call.rows.sees_all_keys()) {
      return elsewhere_->forward(call);
    }
    const at::Tensor query = call.query.stride(2) == 1 ? call.query : call.query.contiguous();
    // The kernel needs a token's elements to be contiguous, and keys and values to have the same strides.
    const bool as_they_are = call.keys.stride(2) == 1 && call.keys.strides() == call.values.strides();
    const at::Tensor keys = as_they_are ? call.keys : call.keys.contiguous();
    const at::Tensor values = as_they_are ? call.values : call.values.contiguous();
    const at::Tensor out = call.workspace.allocate({query.size(0), query.size(1), query.size(2)}, query.options());
    PrefillAttention attention = shape_of(query.size(0), query.size(1), call.rows.keys());
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
    const PrefillAttention attention = shape_of(batch_size, tokens, keys);
    const std::int64_t in_tiles = packed_key_bytes(attention) + at::get_num_threads() * score_bytes(attention) +
                                  2 * batch_size * tokens * shape_.query_width() * element_bytes;
    return std::max(in_tiles, elsewhere_->workspace_bytes(batch_size, tokens, keys, element_bytes));
  }

 private:
  PrefillAttention shape_of(std::int64_t batch_size, std::int64_t tokens, std::int64_t keys) const {
    PrefillAttention attention{};
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
  if (runs_here(counted.dtype, cpu) && !counted.config.relative_bias) {
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
           "Prefill attention in bf16, 32 queries with 32 keys at a time, on a processor's tiles (AMX) or by its "
           "dot products (AVX-512 BF16); elsewhere flash-prefill's kernel.",
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
