// The loops of decode attention where few query heads share a key: the elements of a head stand in the lanes of a
// register. With heads in the lanes, as decode_attention.cpp has them, most lanes would be empty.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/kernels/attention/decode_partials.h"
#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/simd.h"

namespace decodelab {
namespace {

using simd::Floats;
using simd::kLanes;

/// Keys per tile: their values stay in the first-level cache while all heads read them.
constexpr std::int64_t kFewTile = 32;
constexpr std::int64_t kFewKeysAtOnce = 4;
constexpr std::int64_t kFewVectorsAtOnce = 4;

/// A register of an instruction set: compilers keep no wider vector in registers.
template <std::int64_t Bytes>
struct Register {
  static constexpr std::int64_t kElements = Bytes / static_cast<std::int64_t>(sizeof(float));
  using Type = typename simd::Lanes<kElements>::Floats;

  [[gnu::always_inline]] static Type load(const float* from) {
    Type value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  [[gnu::always_inline]] static float sum(const Type& value) {
    if constexpr (Bytes > 16) {
      using Half = Register<Bytes / 2>;
      typename Half::Type halves[2];
      std::memcpy(halves, &value, sizeof value);
      return Half::sum(halves[0] + halves[1]);
    } else {
      const Type pairs = value + __builtin_shufflevector(value, value, 2, 3, 0, 1);
      return pairs[0] + pairs[1];
    }
  }
};

/// Rows of numbers, `stride` apart.
struct FloatRows {
  const float* first;
  std::int64_t stride;
};

template <typename Element, std::int64_t Bytes>
struct AttendFew {
  using Unit = Register<Bytes>;
  using Vector = typename Unit::Type;
  using Whole = decltype(Vector{} < Vector{});  ///< Integers of the same width.

  /// Returns a tile's tokens as fp32 rows of `width` with zero tails: where they are if they are that, else in `room`.
  [[gnu::always_inline]] static FloatRows widened(const Element* from, std::int64_t stride, std::int64_t count,
                                                  std::int64_t head_dim, std::int64_t width, float* room) {
    if constexpr (std::is_same_v<Element, float>) {
      if (head_dim == width) {
        return {from, stride};
      }
    }
    for (std::int64_t token = 0; token < count; ++token) {
      const Element* row = from + token * stride;
      float* const wide = room + token * width;
      if constexpr (std::is_same_v<Element, simd::Bfloat16>) {
        for (std::int64_t at = 0; at < head_dim; ++at) {
          wide[at] = std::bit_cast<float>(std::uint32_t{row[at]} << 16);
        }
        std::fill(wide + head_dim, wide + width, 0.0f);
      } else {
        for (std::int64_t at = 0; at < head_dim; at += kLanes) {
          simd::store(wide + at, simd::load_up_to(row + at, head_dim - at));
        }
      }
    }
    return {room, width};
  }

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
      for (std::int64_t at = 0; at < width; at += Unit::kElements) {
        const Vector elements = Unit::load(query + at);
#pragma GCC unroll 4
        for (std::int64_t j = 0; j < kFewKeysAtOnce; ++j) {
          sums[j] += elements * Unit::load(key[j] + at);
        }
      }
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < kFewKeysAtOnce; ++j) {
        scores[first + j] = Unit::sum(sums[j]);
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
    for (std::int64_t at = 0; at < count; at += Unit::kElements) {
      const Whole there = lane < static_cast<std::int32_t>(count - at);
      highest = simd::max(highest, there ? Unit::load(scores + at) : highest);
    }
    const float before = most;
    for (std::int64_t element = 0; element < Unit::kElements; ++element) {
      most = std::max(most, highest[element]);
    }
    Vector weights{};
    for (std::int64_t at = 0; at < count; at += Unit::kElements) {
      const Whole there = lane < static_cast<std::int32_t>(count - at);
      const Vector weight = simd::exp(Unit::load(scores + at) - most);
      const Vector seen = there ? weight : Vector{};
      std::memcpy(scores + at, &seen, sizeof seen);
      weights += seen;
    }
    const float shrink = before == most ? 1.0f : std::exp(before - most);
    total = total * shrink + Unit::sum(weights);
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
      total[v] = Unit::load(sums + at + v * Unit::kElements);
    }
    for (std::int64_t j = 0; j < count; ++j) {
      const float* value = values.first + j * values.stride + at;
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < Vectors; ++v) {
        total[v] += Unit::load(value + v * Unit::kElements) * weights[j];
      }
    }
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < Vectors; ++v) {
      std::memcpy(sums + at + v * Unit::kElements, &total[v], Bytes);
    }
  }

  [[gnu::always_inline]] static void gather(const float* weights, const FloatRows& values, std::int64_t width,
                                            std::int64_t count, float* sums) {
    std::int64_t at = 0;
    for (; at + kFewVectorsAtOnce * Unit::kElements <= width; at += kFewVectorsAtOnce * Unit::kElements) {
      gather_block<kFewVectorsAtOnce>(weights, values, at, count, sums);
    }
    for (; at < width; at += Unit::kElements) {
      gather_block<1>(weights, values, at, count, sums);
    }
  }

  [[gnu::always_inline]] static void run(const DecodeAttention* attention, std::int64_t first, std::int64_t last) {
    const DecodeAttention& a = *attention;
    const std::int64_t k = a.head_dim;
    const std::int64_t width = filled(k);
    const std::int64_t heads = a.shared_heads;
    alignas(64) float query[kFewHeads * kMostHeadDim];
    alignas(64) float key_room[kFewTile * kMostHeadDim];
    alignas(64) float value_room[kFewTile * kMostHeadDim];
    alignas(64) float scores[kFewTile];
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
        for (std::int64_t at = 0; at < width; at += kLanes) {
          simd::store(partial.values + head * width + at, Floats{});
          const Floats elements = at < k ? simd::load_up_to(from + head * k + at, k - at) : Floats{};
          simd::store(query + head * width + at, elements * a.scale);
        }
      }
      for (std::int64_t tile = begin; tile < end; tile += kFewTile) {
        const std::int64_t count = std::min(end - tile, kFewTile);
        const std::int64_t offset = (tile - begin) * tokens.stride;
        const FloatRows keys = widened(tokens.keys + offset, tokens.stride, count, k, width, key_room);
        const FloatRows values = widened(tokens.values + offset, tokens.stride, count, k, width, value_room);
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

/// Runs on the widest registers that the processor has.
template <typename Element>
void run_widest(const DecodeAttention* attention, std::int64_t first, std::int64_t last, CpuIsa isa) {
#if defined(__x86_64__)
  if (isa >= CpuIsa::avx512) {
    return simd::run_avx512<AttendFew<Element, 64>>(attention, first, last);
  }
  if (isa == CpuIsa::avx2) {
    return simd::run_avx2<AttendFew<Element, 32>>(attention, first, last);
  }
#endif
  simd::run_portable<AttendFew<Element, 16>>(attention, first, last);
}

}  // namespace

void attend_splits_of_few_heads(const DecodeAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa) {
  switch (attention.dtype) {
    case ElementType::float32: return run_widest<float>(&attention, first, last, isa);
    case ElementType::bfloat16: return run_widest<simd::Bfloat16>(&attention, first, last, isa);
    case ElementType::float16: return run_widest<simd::Half>(&attention, first, last, isa);
  }
}

}  // namespace decodelab
