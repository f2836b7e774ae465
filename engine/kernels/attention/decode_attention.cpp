// The loops of decode attention: sixteen query heads stand in the lanes of a register, so that a key is broadcast to
// all of them.
#include "engine/kernels/attention/decode_attention.h"

#include <algorithm>
#include <limits>

#include "base/round_up.h"
#include "engine/kernels/attention/decode_partials.h"
#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/simd.h"

namespace decodelab {
namespace {

using simd::Floats;
using simd::kLanes;

/// Keys per tile: their values stay in the first-level cache while all heads read them.
constexpr std::int64_t kTile = 32;
constexpr std::int64_t kKeysAtOnce = 8;
constexpr std::int64_t kHeadsAtOnce = 4;
constexpr std::int64_t kVectorsAtOnce = 4;

template <typename Element>
struct Attend {
  /// Converts a tile's tokens to fp32 rows of `width`; the tail of each row is zero.
  [[gnu::always_inline]] static void widen(const Element* from, std::int64_t stride, std::int64_t count,
                                           std::int64_t head_dim, std::int64_t width, float* to) {
    for (std::int64_t token = 0; token < count; ++token) {
      const Element* row = from + token * stride;
      for (std::int64_t at = 0; at < head_dim; at += kLanes) {
        simd::store(to + token * width + at, simd::load_up_to(row + at, head_dim - at));
      }
    }
  }

  /// scores[j] = the lanes' queries . key j, for `count` keys of a tile.
  [[gnu::always_inline]] static void score(const float* query, const float* keys, std::int64_t width,
                                           std::int64_t head_dim, std::int64_t count, float* scores) {
    for (std::int64_t first = 0; first < count; first += kKeysAtOnce) {
      const float* key[kKeysAtOnce];
      Floats sums[kKeysAtOnce];
#pragma GCC unroll 8
      for (std::int64_t j = 0; j < kKeysAtOnce; ++j) {
        key[j] = keys + (first + j < count ? first + j : count - 1) * width;
        sums[j] = Floats{};
      }
      for (std::int64_t at = 0; at < head_dim; ++at) {
        const Floats lanes = simd::load(query + at * kLanes);
#pragma GCC unroll 8
        for (std::int64_t j = 0; j < kKeysAtOnce; ++j) {
          sums[j] += lanes * key[j][at];
        }
      }
#pragma GCC unroll 8
      for (std::int64_t j = 0; j < kKeysAtOnce; ++j) {
        simd::store(scores + (first + j) * kLanes, sums[j]);
      }
    }
  }

  /// Turns scores into weights; sums that were computed with an older largest score are scaled to the new one.
  [[gnu::always_inline]] static void weigh(float* scores, std::int64_t count, std::int64_t width,
                                           const Partial& partial) {
    const Floats before = simd::load(partial.most);
    Floats most = before;
    for (std::int64_t j = 0; j < count; ++j) {
      most = simd::max(most, simd::load(scores + j * kLanes));
    }
    const Floats shrink = simd::exp(before - most);
    Floats total = simd::load(partial.total) * shrink;
    for (std::int64_t j = 0; j < count; ++j) {
      const Floats weight = simd::exp(simd::load(scores + j * kLanes) - most);
      simd::store(scores + j * kLanes, weight);
      total += weight;
    }
    simd::store(partial.most, most);
    simd::store(partial.total, total);
    for (std::int64_t head = 0; head < kLanes; ++head) {
      if (shrink[head] == 1.0f) {
        continue;
      }
      for (std::int64_t at = 0; at < width; at += kLanes) {
        float* sum = partial.values + head * width + at;
        simd::store(sum, simd::load(sum) * shrink[head]);
      }
    }
  }

  template <std::int64_t Vectors>
  [[gnu::always_inline]] static void gather_block(const float* weights, const float* values, std::int64_t width,
                                                  std::int64_t count, float* sums) {
    Floats total[kHeadsAtOnce][Vectors];
#pragma GCC unroll 4
    for (std::int64_t head = 0; head < kHeadsAtOnce; ++head) {
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < Vectors; ++v) {
        total[head][v] = simd::load(sums + head * width + v * kLanes);
      }
    }
    for (std::int64_t j = 0; j < count; ++j) {
      Floats value[Vectors];
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < Vectors; ++v) {
        value[v] = simd::load(values + j * width + v * kLanes);
      }
#pragma GCC unroll 4
      for (std::int64_t head = 0; head < kHeadsAtOnce; ++head) {
        const float weight = weights[j * kLanes + head];
#pragma GCC unroll 4
        for (std::int64_t v = 0; v < Vectors; ++v) {
          total[head][v] += value[v] * weight;
        }
      }
    }
#pragma GCC unroll 4
    for (std::int64_t head = 0; head < kHeadsAtOnce; ++head) {
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < Vectors; ++v) {
        simd::store(sums + head * width + v * kLanes, total[head][v]);
      }
    }
  }

  /// sums[head] += weight[j][head] * value[j].
  [[gnu::always_inline]] static void gather(const float* weights, const float* values, std::int64_t width,
                                            std::int64_t count, std::int64_t heads, float* sums) {
    for (std::int64_t head = 0; head < heads; head += kHeadsAtOnce) {
      for (std::int64_t at = 0; at < width; at += kVectorsAtOnce * kLanes) {
        const float* w = weights + head;
        const float* v = values + at;
        float* to = sums + head * width + at;
        switch ((width - at) / kLanes) {
          case 1: gather_block<1>(w, v, width, count, to); break;
          case 2: gather_block<2>(w, v, width, count, to); break;
          case 3: gather_block<3>(w, v, width, count, to); break;
          default: gather_block<4>(w, v, width, count, to); break;
        }
      }
    }
  }

  [[gnu::always_inline]] static void run(const DecodeAttention* attention, std::int64_t first, std::int64_t last) {
    const DecodeAttention& a = *attention;
    const std::int64_t k = a.head_dim;
    const std::int64_t width = filled(k);
    alignas(64) float query[kMostHeadDim * kLanes];         // [k][lanes]
    alignas(64) float untransposed[kMostHeadDim * kLanes];  // [lanes][k], before it is transposed
    alignas(64) float keys[kTile * kMostHeadDim];
    alignas(64) float values[kTile * kMostHeadDim];
    alignas(64) float scores[kTile * kLanes];
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
        simd::store(partial.most, simd::broadcast(-std::numeric_limits<float>::infinity()));
        for (std::int64_t at = kLanes; at < kLanes * (2 + width); at += kLanes) {
          simd::store(partial.most + at, Floats{});
        }
        if (begin >= end) {
          continue;
        }
        const PieceTokens<Element> tokens = piece_tokens<Element>(a, row, kv_head, begin);
        const std::int64_t heads = a.shared_heads - group * kLanes < kLanes ? a.shared_heads - group * kLanes : kLanes;
        widen(from + group * kLanes * k, k, heads, k, width, untransposed);
        for (std::int64_t at = 0; at < k; ++at) {
          for (std::int64_t lane = 0; lane < kLanes; ++lane) {
            query[at * kLanes + lane] = lane < heads ? untransposed[lane * width + at] * a.scale : 0.0f;
          }
        }
        // Starts at a finite number, so that the weights of the first tile are not computed from -inf.
        simd::store(partial.most, simd::broadcast(-std::numeric_limits<float>::max()));
        for (std::int64_t tile = begin; tile < end; tile += kTile) {
          const std::int64_t count = end - tile < kTile ? end - tile : kTile;
          const std::int64_t at = (tile - begin) * tokens.stride;
          widen(tokens.keys + at, tokens.stride, count, k, width, keys);
          widen(tokens.values + at, tokens.stride, count, k, width, values);
          score(query, keys, width, k, count, scores);
          weigh(scores, count, width, partial);
          gather(scores, values, width, count, heads, partial.values);
        }
      }
    }
  }
};

template <typename Element>
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
        Floats total{};
        for (std::int64_t split = 0; split < used; ++split) {
          const Partial partial = partial_of(a, item * a.splits + split, group);
          total += simd::exp(simd::broadcast(partial.most[lane] - most)) * partial.total[lane];
        }
        for (std::int64_t at = 0; at < k; at += kLanes) {
          Floats sum{};
          for (std::int64_t split = 0; split < used; ++split) {
            const Partial partial = partial_of(a, item * a.splits + split, group);
            sum +=
                simd::load(partial.values + lane * width + at) * simd::exp(simd::broadcast(partial.most[lane] - most));
          }
          simd::store_up_to(to + at, sum / total, k - at);
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
  simd::run_typed<Attend>(attention.dtype, isa, &attention, first, last);
}

void merge_splits(const DecodeAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed<Merge>(attention.dtype, isa, &attention, first, last);
}

}  // namespace decodelab
