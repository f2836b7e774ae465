// The loops of decode attention: sixteen query heads of a key at a time.
#include "engine/kernels/attention/decode_attention.h"

#include <algorithm>
#include <limits>

#include "base/round_up.h"
#include "engine/kernels/attention/decode_partials.h"
#include "engine/kernels/attention/query_lanes.h"

namespace decodelab {
namespace {

using simd::kLanes;
using simd::Wide;

/// N numbers stand in a register: sixteen heads in 16 / N of them.
template <typename Element, std::int64_t N>
struct Attend {
  using Lanes = QueryLanes<N>;

  [[gnu::always_inline]] static void run(const DecodeAttention* attention, std::int64_t first, std::int64_t last) {
    const DecodeAttention& a = *attention;
    const std::int64_t k = a.head_dim;
    const std::int64_t width = filled(k);
    alignas(64) float query[kMostHeadDim * kLanes];    // [k][lanes]
    alignas(64) float room[kLaneTile * kMostHeadDim];  // of queries, keys or values in fp32
    alignas(64) float scores[kLaneTile * kLanes];
    for (std::int64_t item = first; item < last; ++item) {
      const std::int64_t split = item % a.splits;
      const std::int64_t kv_head = item / a.splits % a.kv_heads;
      const std::int64_t row = item / a.splits / a.kv_heads;
      const std::int64_t begin = first_key(a, row) + split * kSplitKeys;
      const std::int64_t all = a.held[row] + 1;
      const std::int64_t end = all < begin + kSplitKeys ? all : begin + kSplitKeys;
      const auto* from = static_cast<const Element*>(a.query) + row * a.query_stride + kv_head * a.shared_heads * k;
      for (std::int64_t group = 0; group * kLanes < a.shared_heads; ++group) {
        const Partial partial = partial_of(a, item, group);
        std::fill_n(partial.most, kLanes, -std::numeric_limits<float>::infinity());
        std::fill_n(partial.total, kLanes * (1 + width), 0.0f);
        if (begin >= end) {
          continue;
        }
        const PieceTokens<Element> tokens = piece_tokens<Element>(a, row, kv_head, begin);
        const std::int64_t heads = a.shared_heads - group * kLanes < kLanes ? a.shared_heads - group * kLanes : kLanes;
        Lanes::put_beside(widened<N>(from + group * kLanes * k, k, heads, k, width, room), heads, k, a.scale, query);
        // Starts at a finite number, so that the weights of the first tile are not computed from -inf.
        std::fill_n(partial.most, kLanes, -std::numeric_limits<float>::max());
        for (std::int64_t tile = begin; tile < end; tile += kLaneTile) {
          const std::int64_t count = end - tile < kLaneTile ? end - tile : kLaneTile;
          const std::int64_t at = (tile - begin) * tokens.stride;
          const FloatRows keys = widened<N>(tokens.keys + at, tokens.stride, count, k, width, room);
          Lanes::score(query, keys, k, count, scores);
          Lanes::weigh(scores, count, width, partial);
          const FloatRows values = widened<N>(tokens.values + at, tokens.stride, count, k, width, room);
          Lanes::gather(scores, values, width, count, heads, partial.values);
        }
      }
    }
  }
};

template <typename Element, std::int64_t N>
struct Merge {
  [[gnu::always_inline]] static void run(const DecodeAttention* attention, std::int64_t first, std::int64_t last) {
    const DecodeAttention& a = *attention;
    const std::int64_t k = a.head_dim;
    const std::int64_t width = filled(k);
    for (std::int64_t item = first; item < last; ++item) {
      const std::int64_t kv_head = item % a.kv_heads;
      const std::int64_t row = item / a.kv_heads;
      const std::int64_t used = (a.held[row] - first_key(a, row) + kSplitKeys) / kSplitKeys;
      for (std::int64_t head = 0; head < a.shared_heads; ++head) {
        const std::int64_t group = head / kLanes;
        const std::int64_t lane = head % kLanes;
        float most = partial_of(a, item * a.splits, group).most[lane];
        for (std::int64_t split = 1; split < used; ++split) {
          const float other = partial_of(a, item * a.splits + split, group).most[lane];
          most = other > most ? other : most;
        }
        auto* to = static_cast<Element*>(a.out) + ((row * a.kv_heads + kv_head) * a.shared_heads + head) * k;
        float total = 0;
        for (std::int64_t split = 0; split < used; ++split) {
          const Partial partial = partial_of(a, item * a.splits + split, group);
          total += lane_exp(partial.most[lane] - most) * partial.total[lane];
        }
        for (std::int64_t at = 0; at < k; at += kLanes) {
          Wide<N> sum{};
          for (std::int64_t split = 0; split < used; ++split) {
            const Partial partial = partial_of(a, item * a.splits + split, group);
            sum += simd::load_wide<N>(partial.values + lane * width + at) * lane_exp(partial.most[lane] - most);
          }
          simd::store_wide(to + at, sum / total, k - at);
        }
      }
    }
  }
};

}  // namespace

std::int64_t splits_of(std::int64_t keys) { return divided_up(keys, kSplitKeys); }
std::int64_t split_items(const DecodeAttention& attention) {
  return attention.batch_size * attention.kv_heads * attention.splits;
}
std::int64_t merge_items(const DecodeAttention& attention) { return attention.batch_size * attention.kv_heads; }
std::int64_t partial_floats(const DecodeAttention& attention) {
  return split_items(attention) * groups(attention) * floats_of_partial(attention);
}

void attend_splits(const DecodeAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa) {
  if (isa == CpuIsa::amx_bf16 && fits_tiles(attention)) {
    attend_splits_on_tiles(attention, first, last);
    return;
  }
  if (attention.shared_heads <= kFewHeads) {
    attend_splits_of_few_heads(attention, first, last, isa);
    return;
  }
  simd::run_typed_wide<Attend>(attention.dtype, isa, &attention, first, last);
}

void merge_splits(const DecodeAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed_wide<Merge>(attention.dtype, isa, &attention, first, last);
}

}  // namespace decodelab
