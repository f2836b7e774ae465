// Shapes queries, keys and values for libtorch's fused attention kernels.
#include "engine/layers/sdpa_attention.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/round_up.h"
#include "engine/layers/attention.h"
#include "engine/layers/softmax.h"
#include "engine/layers/step_rows.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

/// libtorch's CPU kernel works on blocks of at most this many queries and keys a thread, scores in fp32.
constexpr std::int64_t kQueryBlock = 256;
constexpr std::int64_t kKeyBlock = 512;
constexpr std::int64_t kMaskMultiple = 16;

class SdpaAttention final : public Attention {
 public:
  SdpaAttention(const AttentionShape& shape, SdpaKernel kernel, std::string variant)
      : shape_(shape), kernel_(kernel), variant_(std::move(variant)) {}

  at::Tensor forward(const AttentionCall& call) const override {
    const StepRows& rows = call.rows;
    const bool fresh = std::ranges::all_of(rows.past(), [](std::int64_t past) { return past == 0; });
    // The causal flag is aligned at the top left: it would be wrong for several queries that follow held keys. Rows are
    // aligned at their start, so that it is right for every real query of fresh rows of any length.
    const bool plain = call.bias == nullptr && (call.window == 0 || call.window >= rows.keys()) &&
                       !rows.sees_all_keys() && (fresh || rows.tokens() == 1);
    if (!plain && !call.query.is_cpu()) {
      throw std::invalid_argument(variant_ +
                                  " attends from position 0 or for one new token a row, and takes no bias and no "
                                  "window; use the reference's attention here");
    }
    const std::int64_t B = call.query.size(0);
    const std::int64_t T = call.query.size(1);
    const std::int64_t k = shape_.head_dim;
    const bool causal = plain && rows.tokens() > 1;
    // Rows of one length see all keys that they hold; keys shown beyond those are cut off.
    const bool all_seen = plain && (causal || rows.uniform());
    const std::int64_t shown = all_seen ? rows.keys() : call.keys.size(1);
    const bool folds = folded(T);
    const at::Tensor query = folds ? call.query.view({B, shape_.kv_heads, shape_.shared_heads(), k})
                                   : call.query.unflatten(2, {shape_.heads, k}).transpose(1, 2);
    const at::Tensor keys = heads(call.keys.narrow(1, 0, shown), folds);
    const at::Tensor values = heads(call.values.narrow(1, 0, shown), folds);
    std::optional<at::Tensor> mask;
    if (!plain) {
      mask = masked_bias(call, folds);
    } else if (!all_seen) {
      // The kernels of CUDA read rows of masks that begin at multiples of 16 numbers.
      const std::int64_t room = call.query.is_cpu() ? shown : rounded_up(shown, kMaskMultiple);
      mask = at::zeros({B, 1, 1, room}, query.options()).narrow(3, 0, shown);
      mask->masked_fill_(rows.visible(shown).unsqueeze(1).logical_not(), -std::numeric_limits<float>::infinity());
    }
    const at::Tensor attended = run(query, keys, values, mask, causal);
    return (folds ? attended : attended.transpose(1, 2)).reshape({B, T, shape_.query_width()});
  }

  std::int64_t workspace_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t keys,
                               std::int64_t element_bytes) const override {
    const std::int64_t log_sum_exp = batch_size * shape_.heads * tokens * 4;
    const std::int64_t blocks = at::get_num_threads() * kQueryBlock * (2 * kKeyBlock + shape_.head_dim) * 4;
    const bool copies = kernel_ == SdpaKernel::efficient || (groups() && !folded(tokens));
    const std::int64_t repeated = copies ? 2 * batch_size * keys * shape_.query_width() * element_bytes : 0;
    const std::int64_t mask = shape_.masks ? 2 * (batch_size + shape_.heads) * tokens * keys * element_bytes : 0;
    return mask + log_sum_exp + blocks + repeated +
           batch_size * (tokens * shape_.query_width() + 2 * keys) * element_bytes;
  }

 private:
  /// Returns what is added to all scores: the bias, and the lowest number where a query does not see a key. Finite,
  /// since a block of keys may be hidden as a whole.
  at::Tensor masked_bias(const AttentionCall& call, bool folds) const {
    const at::Tensor visible = call.rows.visible(call.keys.size(1), call.window).unsqueeze(1);  // [B, 1, T, L]
    const at::Tensor lowest =
        at::scalar_tensor(call.query.scalar_type() == at::kHalf ? kLowestHalf : kLowestBfloat16, call.query.options());
    const at::Tensor mask =
        at::where(visible, call.bias == nullptr ? at::zeros({}, call.query.options()) : *call.bias, lowest);
    const bool by_head = folds && mask.size(1) > 1;
    return by_head ? mask.view({mask.size(0), shape_.kv_heads, shape_.shared_heads(), mask.size(3)}) : mask;
  }

  at::Tensor run(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                 const std::optional<at::Tensor>& mask, bool causal) const {
    const double scale = shape_.scale;
    if (query.is_cpu()) {
      return std::get<0>(
          at::_scaled_dot_product_flash_attention_for_cpu(query, keys, values, 0.0, causal, mask, scale));
    }
    switch (kernel_) {
      case SdpaKernel::flash:
        if (mask) {
          throw std::invalid_argument(variant_ +
                                      " takes no mask, which rows of different lengths need: decode them apart");
        }
        return std::get<0>(at::_scaled_dot_product_flash_attention(query, keys, values, 0.0, causal, false, scale));
      case SdpaKernel::efficient:
        return std::get<0>(at::_scaled_dot_product_efficient_attention(
            query, keys.contiguous(), values.contiguous(), of_all_heads(query, keys, mask), false, 0.0, causal, scale));
      case SdpaKernel::cudnn:
        return std::get<0>(
            at::_scaled_dot_product_cudnn_attention(query, keys, values, mask, false, 0.0, causal, false, scale));
    }
    throw std::logic_error("an attention kernel without a call");
  }

  /// Returns the mask for every head and query, which the efficient kernel does not repeat itself.
  static std::optional<at::Tensor> of_all_heads(const at::Tensor& query, const at::Tensor& keys,
                                                const std::optional<at::Tensor>& mask) {
    return mask ? std::optional(mask->expand({query.size(0), query.size(1), query.size(2), keys.size(2)})) : mask;
  }

  /// Returns whether several query heads share each of several key heads.
  bool groups() const { return shape_.kv_heads > 1 && shape_.kv_heads < shape_.heads; }
  /// Returns whether the query heads of a key head are its queries: a single token sees the same keys in all of them.
  bool folded(std::int64_t tokens) const { return groups() && tokens == 1; }

  /// [B, L, G * k] -> [B, G, L, k] where queries are folded, else [B, H, L, k]. A single head is repeated by a stride
  /// of 0; of several there is no such view.
  at::Tensor heads(const at::Tensor& packed, bool folds) const {
    const std::int64_t B = packed.size(0);
    const std::int64_t L = packed.size(1);
    const std::int64_t G = shape_.kv_heads;
    const at::Tensor own = packed.unflatten(2, {G, shape_.head_dim}).transpose(1, 2);
    return folds ? own : own.unsqueeze(2).expand({B, G, shape_.shared_heads(), L, shape_.head_dim}).flatten(1, 2);
  }

  AttentionShape shape_;
  SdpaKernel kernel_;
  std::string variant_;
};

}  // namespace

std::unique_ptr<Attention> make_sdpa_attention(const AttentionShape& shape, SdpaKernel kernel, std::string variant) {
  return std::make_unique<SdpaAttention>(shape, kernel, std::move(variant));
}

const char* sdpa_operator(SdpaKernel kernel, bool cpu) {
  if (cpu) {
    return "op.aten::_scaled_dot_product_flash_attention_for_cpu";
  }
  switch (kernel) {
    case SdpaKernel::flash: return "op.aten::_scaled_dot_product_flash_attention";
    case SdpaKernel::efficient: return "op.aten::_scaled_dot_product_efficient_attention";
    case SdpaKernel::cudnn: return "op.aten::_scaled_dot_product_cudnn_attention";
  }
  return "";
}

}  // namespace decodelab
