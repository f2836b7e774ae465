// Prefill attention without tiles and dot products: sixteen queries at a time over keys and values as they are.
#include <algorithm>
#include <array>
#include <limits>

#include "base/round_up.h"
#include "engine/kernels/attention/prefill_attention.h"
#include "engine/kernels/attention/prefill_queries.h"
#include "engine/kernels/attention/query_lanes.h"

namespace decodelab {
namespace {

using simd::kLanes;

std::int64_t lane_blocks(const PrefillAttention& a) { return divided_up(a.tokens * a.shared_heads, kLanes); }

/// Says which keys each of sixteen queries sees: those from `hidden` to before `seen`.
struct SeenKeys {
  explicit SeenKeys(const PrefillQueries& queries) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      // Lanes without a query see what the last query sees.
      const std::int64_t query = std::min(lane, queries.count() - 1);
      hidden[static_cast<std::size_t>(lane)] = queries.hidden_from(query);
      seen[static_cast<std::size_t>(lane)] = queries.seen_by(query);
    }
  }

  /// Gives the lowest score to each key of a tile that its query does not see.
  void hide(std::int64_t tile, std::int64_t count, float* scores) const {
    if (tile >= hidden.back() && tile + count <= seen.front()) {
      return;
    }
    for (std::int64_t key = tile; key < tile + count; ++key) {
      float* const lanes = scores + (key - tile) * kLanes;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = key < hidden[lane] || key >= seen[lane] ? -std::numeric_limits<float>::max() : lanes[lane];
      }
    }
  }

  std::array<std::int64_t, kLanes> hidden;
  std::array<std::int64_t, kLanes> seen;
};

template <typename Element, std::int64_t N>
struct AttendPrompt {
  using Lanes = QueryLanes<N>;

  [[gnu::always_inline]] static void run(const PrefillAttention* attention, std::int64_t first, std::int64_t last) {
    const PrefillAttention& a = *attention;
    const std::int64_t k = a.head_dim;
    const std::int64_t width = filled(k);
    alignas(64) float query[kMostHeadDim * kLanes];    // [k][lanes]
    alignas(64) float room[kLaneTile * kMostHeadDim];  // of queries, keys or values in fp32
    alignas(64) float scores[kLaneTile * kLanes];
    alignas(64) float sums[(2 + kMostHeadDim) * kLanes];
    const Partial partial{sums, sums + kLanes, sums + 2 * kLanes};
    for (std::int64_t item = first; item < last; ++item) {
      const PrefillQueries queries(a, item, lane_blocks(a), kLanes);
      for (std::int64_t lane = 0; lane < queries.count(); ++lane) {
        widen<N>(static_cast<const Element*>(a.query) + queries.query_offset(lane), k, room + lane * width);
      }
      Lanes::put_beside({room, width}, queries.count(), k, a.scale, query);
      const SeenKeys seen(queries);
      // Finite, so that the weights of keys that are not seen are not computed from -inf.
      std::fill_n(partial.most, kLanes, -std::numeric_limits<float>::max());
      std::fill_n(partial.total, kLanes * (1 + width), 0.0f);
      const std::int64_t offset = queries.row() * a.row_stride + queries.kv_head() * k;
      const std::int64_t end = seen.seen.back();
      for (std::int64_t tile = seen.hidden.front() / kLaneTile * kLaneTile; tile < end; tile += kLaneTile) {
        const std::int64_t count = end - tile < kLaneTile ? end - tile : kLaneTile;
        const std::int64_t at = offset + tile * a.token_stride;
        Lanes::score(query, widened<N>(static_cast<const Element*>(a.keys) + at, a.token_stride, count, k, width, room),
                     k, count, scores);
        seen.hide(tile, count, scores);
        Lanes::weigh(scores, count, width, partial);
        Lanes::gather(scores,
                      widened<N>(static_cast<const Element*>(a.values) + at, a.token_stride, count, k, width, room),
                      width, count, queries.count(), partial.values);
      }
      for (std::int64_t lane = 0; lane < queries.count(); ++lane) {
        auto* const to = static_cast<Element*>(a.out) + queries.out_offset(lane);
        for (std::int64_t at = 0; at < k; at += kLanes) {
          simd::store_wide(to + at, simd::load_wide<N>(partial.values + lane * width + at) / partial.total[lane],
                           k - at);
        }
      }
    }
  }
};

}  // namespace

std::int64_t lane_items(const PrefillAttention& a) { return a.batch_size * a.kv_heads * lane_blocks(a); }

void attend_in_lanes(const PrefillAttention& a, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed_wide<AttendPrompt>(a.dtype, isa, &a, first, last);
}

}  // namespace decodelab
