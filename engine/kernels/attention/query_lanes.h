// Attention of sixteen queries over a tile of keys: the queries stand beside each other in registers, so that a key is
// broadcast to all of them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/kernels/attention/decode_partials.h"
#include "engine/kernels/wide.h"

namespace decodelab {

/// Keys per tile: their values stay in the first-level cache while all queries read them.
inline constexpr std::int64_t kLaneTile = 32;

/// Rows of numbers, `stride` apart.
template <typename Element>
struct NumberRows {
  const Element* first;
  std::int64_t stride;
};
using FloatRows = NumberRows<float>;

/// Stores a head's elements in fp32, filled up to whole sixteens with zeros.
template <std::int64_t N, typename Element>
[[gnu::always_inline]] inline void widen(const Element* from, std::int64_t head_dim, float* to) {
  for (std::int64_t at = 0; at < head_dim; at += simd::kLanes) {
    simd::store_wide(to + at, simd::load_wide<N>(from + at, head_dim - at));
  }
}

/// Returns `count` tokens as fp32 rows of `width` numbers, a head's elements filled up to whole sixteens with zeros:
/// where the tokens are if they are that, else in `room`.
template <std::int64_t N, typename Element>
[[gnu::always_inline]] inline FloatRows widened(const Element* from, std::int64_t stride, std::int64_t count,
                                                std::int64_t head_dim, std::int64_t width, float* room) {
  if constexpr (std::is_same_v<Element, float>) {
    if (head_dim == width) {
      return {from, stride};
    }
  }
  for (std::int64_t token = 0; token < count; ++token) {
    widen<N>(from + token * stride, head_dim, room + token * width);
  }
  return {room, width};
}

/// Holds the steps of such attention on registers of N numbers. `width` is the number of elements of a head, filled up
/// to whole sixteens.
template <std::int64_t N>
struct QueryLanes {
  using Queries = simd::Wide<N>;
  using Register = typename simd::Lanes<N>::Floats;
  /// As many sums as there are registers for: 32 of sixteen numbers, else 16.
  static constexpr std::int64_t kKeysAtOnce = 8 / Queries::kParts;
  static constexpr std::int64_t kQueriesAtOnce = 4;
  static constexpr std::int64_t kRegistersAtOnce = N == simd::kLanes ? 4 : 2;

  /// Stores rows of queries as [head_dim][16], times `scale`; zeros stand in the place of those beyond `queries`.
  [[gnu::always_inline]] static void put_beside(const FloatRows& rows, std::int64_t queries, std::int64_t head_dim,
                                                float scale, float* query) {
    for (std::int64_t at = 0; at < head_dim; ++at) {
      for (std::int64_t lane = 0; lane < simd::kLanes; ++lane) {
        query[at * simd::kLanes + lane] = lane < queries ? rows.first[lane * rows.stride + at] * scale : 0.0f;
      }
    }
  }

  /// scores[j] = the queries . key j, for `count` keys of a tile; `query` is [head_dim][16].
  [[gnu::always_inline]] static void score(const float* query, const FloatRows& keys, std::int64_t head_dim,
                                           std::int64_t count, float* scores) {
    for (std::int64_t first = 0; first < count; first += kKeysAtOnce) {
      const float* key[kKeysAtOnce];
      Queries sums[kKeysAtOnce];
#pragma GCC unroll 8
      for (std::int64_t j = 0; j < kKeysAtOnce; ++j) {
        key[j] = keys.first + (first + j < count ? first + j : count - 1) * keys.stride;
        sums[j] = Queries{};
      }
      for (std::int64_t at = 0; at < head_dim; ++at) {
        const Queries lanes = simd::load_wide<N>(query + at * simd::kLanes);
#pragma GCC unroll 8
        for (std::int64_t j = 0; j < kKeysAtOnce; ++j) {
          sums[j] += lanes * key[j][at];
        }
      }
#pragma GCC unroll 8
      for (std::int64_t j = 0; j < kKeysAtOnce; ++j) {
        simd::store_wide(scores + (first + j) * simd::kLanes, sums[j]);
      }
    }
  }

  /// Turns scores into weights; sums that were computed with an older largest score are scaled to the new one.
  [[gnu::always_inline]] static void weigh(float* scores, std::int64_t count, std::int64_t width,
                                           const Partial& partial) {
    const Queries before = simd::load_wide<N>(partial.most);
    Queries most = before;
    for (std::int64_t j = 0; j < count; ++j) {
      most = simd::max(most, simd::load_wide<N>(scores + j * simd::kLanes));
    }
    const Queries shrink = simd::exp(before - most);
    Queries total = simd::load_wide<N>(partial.total) * shrink;
    for (std::int64_t j = 0; j < count; ++j) {
      const Queries weight = simd::exp(simd::load_wide<N>(scores + j * simd::kLanes) - most);
      simd::store_wide(scores + j * simd::kLanes, weight);
      total += weight;
    }
    simd::store_wide(partial.most, most);
    simd::store_wide(partial.total, total);
    float factors[simd::kLanes];
    simd::store_wide(factors, shrink);
    for (std::int64_t lane = 0; lane < simd::kLanes; ++lane) {
      if (factors[lane] == 1.0f) {
        continue;
      }
      for (std::int64_t at = 0; at < width; at += simd::kLanes) {
        float* sum = partial.values + lane * width + at;
        simd::store_wide(sum, simd::load_wide<N>(sum) * factors[lane]);
      }
    }
  }

  /// sums[query] += weight[j][query] * value[j], of the first `queries`; four of them are done at once.
  [[gnu::always_inline]] static void gather(const float* weights, const FloatRows& values, std::int64_t width,
                                            std::int64_t count, std::int64_t queries, float* sums) {
    for (std::int64_t query = 0; query < queries; query += kQueriesAtOnce) {
      std::int64_t at = 0;
      for (; at + kRegistersAtOnce * N <= width; at += kRegistersAtOnce * N) {
        gather_block<kRegistersAtOnce>(weights + query, values, at, count, sums + query * width + at, width);
      }
      for (; at < width; at += N) {
        gather_block<1>(weights + query, values, at, count, sums + query * width + at, width);
      }
    }
  }

 private:
  /// Does that for the elements of some registers, from `at` on.
  template <std::int64_t Registers>
  [[gnu::always_inline]] static void gather_block(const float* weights, const FloatRows& values, std::int64_t at,
                                                  std::int64_t count, float* sums, std::int64_t width) {
    Register total[kQueriesAtOnce][Registers];
#pragma GCC unroll 4
    for (std::int64_t query = 0; query < kQueriesAtOnce; ++query) {
#pragma GCC unroll 4
      for (std::int64_t r = 0; r < Registers; ++r) {
        total[query][r] = simd::load<N>(sums + query * width + r * N);
      }
    }
    for (std::int64_t j = 0; j < count; ++j) {
      Register value[Registers];
#pragma GCC unroll 4
      for (std::int64_t r = 0; r < Registers; ++r) {
        value[r] = simd::load<N>(values.first + j * values.stride + at + r * N);
      }
#pragma GCC unroll 4
      for (std::int64_t query = 0; query < kQueriesAtOnce; ++query) {
        const float weight = weights[j * simd::kLanes + query];
#pragma GCC unroll 4
        for (std::int64_t r = 0; r < Registers; ++r) {
          total[query][r] += value[r] * weight;
        }
      }
    }
#pragma GCC unroll 4
    for (std::int64_t query = 0; query < kQueriesAtOnce; ++query) {
#pragma GCC unroll 4
      for (std::int64_t r = 0; r < Registers; ++r) {
        simd::store(sums + query * width + r * N, total[query][r]);
      }
    }
  }
};

/// Returns e^x as the kernels compute it.
[[gnu::always_inline]] inline float lane_exp(float x) { return simd::exp(simd::Lanes<4>::Floats{} + x)[0]; }

}  // namespace decodelab
