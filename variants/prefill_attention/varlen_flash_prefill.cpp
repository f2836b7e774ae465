// Prefill attention by the flash kernel over each prompt's own tokens, where prompts have different lengths.
#include <algorithm>

#include "engine/layers/attention.h"
#include "engine/layers/step_rows.h"
#include "engine/tensor.h"
#include "variants/prefill_attention/sdpa_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "varlen-flash-prefill";

class VarlenFlash final : public Attention {
 public:
  explicit VarlenFlash(const AttentionShape& shape)
      : shape_(shape), dense_(make_sdpa_attention(shape, SdpaKernel::flash, kName)) {}

  at::Tensor forward(const AttentionCall& call) const override {
    const std::vector<std::int64_t>& past = call.rows.past();
    if (call.rows.uniform() || call.bias != nullptr || call.rows.sees_all_keys() ||
        std::ranges::any_of(past, [](auto held) { return held != 0; })) {
      return dense_->forward(call);  // There is no padding to leave out, or dense_ refuses the call.
    }
    return call.query.is_cpu() ? row_by_row(call) : all_rows(call);
  }

  std::int64_t workspace_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t keys,
                               std::int64_t element_bytes) const override {
    // Queries, keys and values without their padding, and the result with it and without.
    const std::int64_t packed =
        batch_size * tokens * (3 * shape_.query_width() + 2 * shape_.key_width()) * element_bytes;
    return dense_->workspace_bytes(batch_size, tokens, keys, element_bytes) + packed;
  }

 private:
  /// libtorch's CPU kernel does not support rows of different lengths; one call per row costs little compared to a
  /// prompt.
  at::Tensor row_by_row(const AttentionCall& call) const {
    at::Tensor out = at::zeros_like(call.query, at::MemoryFormat::Contiguous);
    for (std::int64_t row = 0; row < call.rows.batch_size(); ++row) {
      const std::int64_t tokens = call.rows.added()[static_cast<std::size_t>(row)];
      if (tokens == 0) {
        continue;
      }
      const auto own = [&](const at::Tensor& all) { return all.narrow(0, row, 1).narrow(1, 0, tokens); };
      const StepRows alone({0}, {tokens}, tokens, call.query.device());
      const at::Tensor query = own(call.query);
      const at::Tensor keys = own(call.keys);
      const at::Tensor values = own(call.values);
      own(out).copy_(dense_->forward({.layer = call.layer,
                                      .query = query,
                                      .keys = keys,
                                      .values = values,
                                      .rows = alone,
                                      .workspace = call.workspace,
                                      .window = call.window}));
    }
    return out;
  }

  /// Runs one kernel for all rows, which are concatenated; the offset of each row tells them apart.
  at::Tensor all_rows(const AttentionCall& call) const {
    const StepRows& rows = call.rows;
    const std::int64_t T = rows.tokens();
    const at::Tensor& source = rows.scatter().source;  // Fresh rows: keys stand where their queries do.
    const auto packed = [&](const at::Tensor& all, std::int64_t heads) {
      return all.narrow(1, 0, T).flatten(0, 1).index_select(0, source).unflatten(1, {heads, shape_.head_dim});
    };
    std::vector<std::int32_t> begins{0};
    for (const std::int64_t tokens : rows.added()) {
      begins.push_back(begins.back() + static_cast<std::int32_t>(tokens));
    }
    const at::Tensor first = at::tensor(begins, at::kInt).to(call.query.device());
    const at::Tensor attended = std::get<0>(at::_flash_attention_forward(
        packed(call.query, shape_.heads), packed(call.keys, shape_.kv_heads), packed(call.values, shape_.kv_heads),
        first, first, T, T, 0.0, /*is_causal=*/true, /*return_debug_mask=*/false, shape_.scale));
    at::Tensor out = at::zeros_like(call.query, at::MemoryFormat::Contiguous);
    out.view({-1, out.size(2)}).index_copy_(0, source, attended.flatten(1));
    return out;
  }

  AttentionShape shape_;
  std::unique_ptr<Attention> dense_;
};

Variant described() {
  Variant variant =
      sdpa_variant({.name = kName,
                    .phase = Phase::prefill,
                    .kernel = SdpaKernel::flash,
                    .summary = "Flash attention over each prompt's own tokens, without their padding.",
                    .source = "Dao 2022 (arXiv:2205.14135); text-generation-inference, its flash models"});
  variant.apply = [](EnginePlan& plan, const Parameters&) {
    plan.prefill_attention.bind(
        kName, [](const AttentionShape& shape, const SoftmaxFactory&) { return std::make_unique<VarlenFlash>(shape); });
  };
  return variant;
}

[[maybe_unused]] const bool registered = register_variant(described());

}  // namespace
}  // namespace decodelab
