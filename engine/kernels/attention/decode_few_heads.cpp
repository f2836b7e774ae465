// The loops of decode attention where few query heads share a key: the elements of a head stand in the lanes of a
// register. With heads in the lanes, as decode_attention.cpp has them, most lanes would be empty.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/kernels/attention/decode_partials.h"
#include "engine/kernels/attention/query_lanes.h"

namespace decodelab {
namespace {

using simd::kLanes;

constexpr std::int64_t kFewKeysAtOnce = 4;
constexpr std::int64_t kFewVectorsAtOnce = 4;

/// N numbers stand in a register.
template <typename Element, std::int64_t N>
struct AttendFew {
  using Vector = typename simd::Lanes<N>::Floats;
  using Whole = decltype(Vector{} < Vector{});  ///< Integers of the same width.

  /// scores[j] = query . key j, for `count` keys of a tile.
  [[gnu::always_inline]] static void score(const float* query, const FloatRows& keys, std::int64_t width,
                                           std::int64_t count, float* scores) {
    for (std::int64_t first = 0; first < count; first += kFewKeysAtOnce) {
      const float* key[kFewKeysAtOnce];
      Vector sums[kFewKeysAtOnce];
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < kFewKeysAtOnce; ++j) {
        key[j] = keys.first + (first + j < count ? first + j : count - 1) * keys.stride;
        sums[j] = Vector{};
      }
      for (std::int64_t at = 0; at < width; at += N) {
        const Vector elements = simd::load<N>(query + at);
#pragma GCC unroll 4
        for (std::int64_t j = 0; j < kFewKeysAtOnce; ++j) {
          sums[j] += elements * simd::load<N>(key[j] + at);
        }
      }
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < kFewKeysAtOnce; ++j) {
        scores[first + j] = simd::sum(sums[j]);
      }
    }
  }

  /// Turns a head's scores into weights; its sums, computed with an older largest score, are scaled to the new one.
  [[gnu::always_inline]] static void weigh(float* scores, std::int64_t count, std::int64_t width, float& most,
                                           float& total, float* sums) {
    alignas(64) static constexpr std::array<std::int32_t, kLanes> kNumbers{0, 1, 2,  3,  4,  5,  6,  7,
                                                                           8, 9, 10, 11, 12, 13, 14, 15};
    Whole lane;
    std::memcpy(&lane, kNumbers.data(), sizeof lane);
    Vector highest = Vector{} + most;
    for (std::int64_t at = 0; at < count; at += N) {
      const Whole there = lane < static_cast<std::int32_t>(count - at);
      highest = simd::max(highest, there ? simd::load<N>(scores + at) : highest);
    }
    const float before = most;
    for (std::int64_t element = 0; element < N; ++element) {
      most = std::max(most, highest[element]);
    }
    Vector weights{};
    for (std::int64_t at = 0; at < count; at += N) {
      const Whole there = lane < static_cast<std::int32_t>(count - at);
      const Vector weight = simd::exp(simd::load<N>(scores + at) - most);
      const Vector seen = there ? weight : Vector{};
      simd::store(scores + at, seen);
      weights += seen;
    }
    const float shrink = before == most ? 1.0f : std::exp(before - most);
    total = total * shrink + simd::sum(weights);
    for (std::int64_t at = 0; shrink != 1.0f && at < width; ++at) {
      sums[at] *= shrink;
    }
  }

  /// sums += weights[j] * value[j], for the elements of `Vectors` registers from `at` on.
  template <std::int64_t Vectors>
  [[gnu::always_inline]] static void gather_block(const float* weights, const FloatRows& values, std::int64_t at,
                                                  std::int64_t count, float* sums) {
    Vector total[Vectors];
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < Vectors; ++v) {
      total[v] = simd::load<N>(sums + at + v * N);
    }
    for (std::int64_t j = 0; j < count; ++j) {
      const float* value = values.first + j * values.stride + at;
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < Vectors; ++v) {
        total[v] += simd::load<N>(value + v * N) * weights[j];
      }
    }
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < Vectors; ++v) {
      simd::store(sums + at + v * N, total[v]);
    }
  }

  [[gnu::always_inline]] static void gather(const float* weights, const FloatRows& values, std::int64_t width,
                                            std::int64_t count, float* sums) {
    std::int64_t at = 0;
    for (; at + kFewVectorsAtOnce * N <= width; at += kFewVectorsAtOnce * N) {
      gather_block<kFewVectorsAtOnce>(weights, values, at, count, sums);
    }
    for (; at < width; at += N) {
      gather_block<1>(weights, values, at, count, sums);
    }
  }

  [[gnu::always_inline]] static void run(const DecodeAttention* attention, std::int64_t first, std::int64_t last) {
    const DecodeAttention& a = *attention;
    const std::int64_t k = a.head_dim;
    const std::int64_t width = filled(k);
    const std::int64_t heads = a.shared_heads;
    alignas(64) float query[kFewHeads * kMostHeadDim];
    alignas(64) float key_room[kLaneTile * kMostHeadDim];
    alignas(64) float value_room[kLaneTile * kMostHeadDim];
    alignas(64) float scores[kLaneTile];
    for (std::int64_t item = first; item < last; ++item) {
      const std::int64_t split = item % a.splits;
      const std::int64_t kv_head = item / a.splits % a.kv_heads;
      const std::int64_t row = item / a.splits / a.kv_heads;
      const std::int64_t begin = first_key(a, row) + split * kSplitKeys;
      const std::int64_t end = std::min(a.held[row] + 1, begin + kSplitKeys);
      if (begin >= end) {
        continue;  // Nobody reads what a split without keys leaves.
      }
      const PieceTokens<Element> tokens = piece_tokens<Element>(a, row, kv_head, begin);
      const Partial partial = partial_of(a, item, 0);
      const auto* from = static_cast<const Element*>(a.query) + row * a.query_stride + kv_head * heads * k;
      for (std::int64_t head = 0; head < heads; ++head) {
        // Finite, so that the weights of the first tile are not computed from -inf.
        partial.most[head] = -std::numeric_limits<float>::max();
        partial.total[head] = 0;
        std::fill_n(partial.values + head * width, width, 0.0f);
        for (std::int64_t at = 0; at < k; at += kLanes) {
          simd::store_wide(query + head * width + at, simd::load_wide<N>(from + head * k + at, k - at) * a.scale);
        }
      }
      for (std::int64_t tile = begin; tile < end; tile += kLaneTile) {
        const std::int64_t count = std::min(end - tile, kLaneTile);
        const std::int64_t offset = (tile - begin) * tokens.stride;
        const FloatRows keys = widened<N>(tokens.keys + offset, tokens.stride, count, k, width, key_room);
        const FloatRows values = widened<N>(tokens.values + offset, tokens.stride, count, k, width, value_room);
        for (std::int64_t head = 0; head < heads; ++head) {
          float* const sums = partial.values + head * width;
          score(query + head * width, keys, width, count, scores);
          weigh(scores, count, width, partial.most[head], partial.total[head], sums);
          gather(scores, values, width, count, sums);
        }
      }
    }
  }
};

}  // namespace

void attend_splits_of_few_heads(const DecodeAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed_wide<AttendFew>(attention.dtype, isa, &attention, first, last);
}

}  // namespace decodelab
