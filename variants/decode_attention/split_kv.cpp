// Attention of one token a row by our own kernel, which reads each key once for all the heads that share it and splits
// long rows among threads; of several tokens, each with the bits of its own step.
#include "variants/decode_attention/split_kv.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/kernels/attention/decode_attention.cuh"
#include "engine/kernels/attention/decode_attention.h"
#include "engine/kernels/device_element.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/attention.h"
#include "engine/layers/kv_pages.h"
#include "engine/layers/sdpa_attention.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "variants/attention_limits.h"

namespace decodelab {
namespace {

class SplitKv final : public Attention {
 public:
  SplitKv(const AttentionShape& shape, const std::string& variant)
      : shape_(shape), biased_(make_sdpa_attention(shape, SdpaKernel::flash, variant)) {}

  at::Tensor forward(const AttentionCall& call) const override {
    if (call.bias != nullptr) {
      return biased_->forward(call);
    }
    return call.query.is_cpu() ? attend(call) : attend_on_device(call);
  }

  bool reads_packed(const StepRows& rows) const override { return rows.device().is_cpu(); }
  bool reads_pages() const override { return true; }

  std::int64_t workspace_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t keys,
                               std::int64_t element_bytes) const override {
    // A GPU's splits are longer, or too few to matter.
    DecodeAttention attention{};
    attention.batch_size = batch_size;
    attention.kv_heads = shape_.kv_heads;
    attention.shared_heads = shape_.shared_heads();
    attention.head_dim = shape_.head_dim;
    attention.splits = splits_of(keys);
    return std::max(2 * partial_floats(attention) * static_cast<std::int64_t>(sizeof(float)),
                    biased_->workspace_bytes(batch_size, tokens, keys, element_bytes));
  }

 private:
  /// A merge takes a few microseconds: fewer than this many are not worth another thread.
  static constexpr std::int64_t kMergesOfATask = 8;

  /// Returns the queries [B, T, H * k] with the same distance between any two of them, row after row.
  static at::Tensor even_queries(const at::Tensor& query) {
    const std::int64_t T = query.size(1);
    const bool even = T == 1 || query.size(0) == 1 || query.stride(0) == T * query.stride(1);
    return even ? query : query.contiguous();
  }

  /// Attends on the CPU, for each token with the bits of a decode step at its position: [B, T, H * k].
  at::Tensor attend(const AttentionCall& call) const {
    const std::int64_t B = call.query.size(0);
    const std::int64_t T = call.query.size(1);
    const bool packs = call.rows.packs();
    const at::Tensor out = call.workspace.allocate({B, T, shape_.query_width()}, call.query.options());
    const at::Tensor query = even_queries(call.query);
    const auto held = [&] {
      if (packs) {
        return call.rows.scatter().position.const_data_ptr<std::int64_t>();
      }
      return T == 1 ? call.rows.past().data() : call.rows.held_before_queries(T).data();
    };
    DecodeAttention attention{
        .dtype = element_type(query.scalar_type()),
        .batch_size = B * T,
        .kv_heads = shape_.kv_heads,
        .shared_heads = shape_.shared_heads(),
        .head_dim = shape_.head_dim,
        .scale = static_cast<float>(shape_.scale),
        .query = query.const_data_ptr(),
        .query_stride = T == 1 ? query.stride(0) : query.stride(1),
        .keys = nullptr,
        .values = nullptr,
        .row_stride = 0,
        .token_stride = 0,
        .held = held(),
        .splits = splits_of(most_seen(call, call.rows.keys())),
        .partials = nullptr,
        .out = out.mutable_data_ptr(),
        .window = call.window,
        .queries_of_keys = T,
        .rows_of_queries = packs ? call.rows.scatter().row.const_data_ptr<std::int64_t>() : nullptr};
    if (call.pages != nullptr) {
      attention.pages = call.pages->at.data();
      attention.pages_of_a_row = call.pages->of_a_row;
      run(attention, call);
      return out;
    }
    const at::Tensor keys = packed_tokens(call.keys);
    const at::Tensor values = call.values.strides() == keys.strides() ? call.values : call.values.contiguous();
    attention.keys = keys.const_data_ptr();
    attention.values = values.const_data_ptr();
    attention.row_stride = keys.stride(0);
    attention.token_stride = keys.stride(1);
    run(attention, call);
    return out;
  }

  static void run(DecodeAttention& attention, const AttentionCall& call) {
    const at::Tensor partials = room_for(partial_floats(attention), call);
    attention.partials = partials.mutable_data_ptr<float>();
    const CpuIsa isa = best_cpu_isa(attention.dtype);
    at::parallel_for(0, split_items(attention), 1, [&](std::int64_t first, std::int64_t last) {
      if (attention.pages == nullptr) {
        attend_splits(attention, first, last, isa);
        return;
      }
      // Rows that share a page read it one after the other, while it is in a cache.
      const std::int64_t rows = attention.batch_size;
      for (std::int64_t next = first; next < last; ++next) {
        const std::int64_t of_row = next / rows;  // key heads within splits
        const std::int64_t item = (next % rows * attention.kv_heads + of_row % attention.kv_heads) * attention.splits +
                                  of_row / attention.kv_heads;
        attend_splits(attention, item, item + 1, isa);
      }
    });
    at::parallel_for(0, merge_items(attention), kMergesOfATask,
                     [&](std::int64_t first, std::int64_t last) { merge_splits(attention, first, last, isa); });
  }

  /// Returns the most keys that a query sees of `keys`.
  static std::int64_t most_seen(const AttentionCall& call, std::int64_t keys) {
    return call.window > 0 ? std::min(call.window, keys) : keys;
  }

  /// Allocates a power of two of floats, so that a workspace holds few different sizes.
  static at::Tensor room_for(std::int64_t floats, const AttentionCall& call) {
    const auto size = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(floats)));
    return call.workspace.allocate({size}, call.query.options().dtype(at::kFloat));
  }

  /// Does the same on a GPU: each key is read once for several tokens of a row, but where they see a window.
  at::Tensor attend_on_device([[maybe_unused]] const AttentionCall& call) const {
#ifdef DECODELAB_HAS_CUDA
    const std::int64_t B = call.query.size(0);
    const std::int64_t T = call.query.size(1);
    const std::int64_t G = shape_.kv_heads;
    const std::int64_t R = shape_.shared_heads();
    const std::int64_t k = shape_.head_dim;
    const at::Tensor keys = packed_tokens(call.keys);
    const at::Tensor values = call.values.strides() == keys.strides() ? call.values : call.values.contiguous();
    const at::Tensor query = even_queries(call.query);
    at::Tensor out = call.workspace.allocate({B, T, shape_.query_width()}, call.query.options());
    const at::Tensor& held = call.rows.held_before_queries_on_device(T);
    // Splits depend on the number of shown keys, not of held keys: a captured launch stays valid while rows grow.
    const DecodeLaunch step = decode_launch(B, G, R, k, most_seen(call, keys.size(1)), processors_of(keys));
    const DecodeLaunch launch = call.window > 0 ? step : verify_launch(step, R, k, T);
    const at::Tensor partials = room_for(device_partial_floats(B * T, G, R, k, launch.splits), call);
    const DeviceDecodeAttention attention{.element = device_element(call.query.scalar_type()),
                                          .batch_size = B * T,
                                          .kv_heads = G,
                                          .shared_heads = R,
                                          .head_dim = k,
                                          .scale = static_cast<float>(shape_.scale),
                                          .query = query.const_data_ptr(),
                                          .query_stride = T == 1 ? query.stride(0) : query.stride(1),
                                          .keys = keys.const_data_ptr(),
                                          .values = values.const_data_ptr(),
                                          .row_stride = keys.stride(0),
                                          .token_stride = keys.stride(1),
                                          .held = held.const_data_ptr<std::int64_t>(),
                                          .held_stride = held.stride(0),
                                          .launch = launch,
                                          .partials = partials.mutable_data_ptr<float>(),
                                          .out = out.mutable_data_ptr(),
                                          .window = call.window,
                                          .queries_of_keys = T};
    on_stream_of(out, [&](CUstream_st* stream) { launch_decode_attention(attention, stream); });
    return out;
#else
    throw std::invalid_argument("split-kv attention on a GPU needs a build with CUDA");
#endif
  }

  /// Returns the tensor with the elements of a token contiguous, as every cache returns them.
  static at::Tensor packed_tokens(const at::Tensor& tokens) {
    return tokens.stride(2) == 1 ? tokens : tokens.contiguous();
  }

  AttentionShape shape_;
  std::unique_ptr<Attention> biased_;  ///< For scores with a bias, which the kernel does not add; on a CPU.
};

}  // namespace

std::unique_ptr<Attention> make_split_kv_attention(const AttentionShape& shape, const std::string& variant) {
  return std::make_unique<SplitKv>(shape, variant);
}

std::string split_kv_unsupported(const RunsOn& where) {
  if (where.device != "cpu") {
    if (std::string reason = score_bias_unsupported(where.config); !reason.empty()) {
      return reason;
    }
    return decode_shape_refused(where.config.heads / where.config.kv_heads, where.config.head_dim);
  }
  return where.config.head_dim > kMostHeadDim ? "its kernel for a CPU takes heads of at most 256 elements" : "";
}

}  // namespace decodelab
