// The loops of decode attention where few query heads share a key: the elements of a head stand in the lanes of a
// register. With heads in the lanes, as decode_attention.cpp has them, most lanes would be empty.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "engine/kernels/attention/decode_partials.h"
#include "engine/kernels/attention/query_lanes.h"

namespace decodelab {
namespace {

using simd::kLanes;

constexpr std::int64_t kLineBytes = 64;

/// A row's keys and values of one key head, up to kSplitKeys of them.
template <typename Element>
struct Piece {
  Piece(const DecodeAttention& a, std::int64_t item)
      : row(item / a.splits / a.kv_heads),
        kv_head(item / a.splits % a.kv_heads),
        begin(first_key(a, row) + item % a.splits * kSplitKeys),
        end(std::min(a.held[row] + 1, begin + kSplitKeys)),
        tokens(begin < end ? piece_tokens<Element>(a, row, kv_head, begin) : PieceTokens<Element>{}) {}

  /// Asks for tokens [first, last), as far as there are any, so that memory works while others are multiplied: a
  /// processor's own prefetchers do not follow rows that are this far apart.
  [[gnu::always_inline]] void prefetch(std::int64_t first, std::int64_t last, std::int64_t head_dim) const {
    const std::int64_t bytes = head_dim * static_cast<std::int64_t>(sizeof(Element));
    for (std::int64_t token = first; token < std::min(last, end - begin); ++token) {
      for (std::int64_t at = 0; at < bytes; at += kLineBytes) {
        __builtin_prefetch(reinterpret_cast<const char*>(tokens.keys + token * tokens.stride) + at, 0, 2);
        __builtin_prefetch(reinterpret_cast<const char*>(tokens.values + token * tokens.stride) + at, 0, 2);
      }
    }
  }

  std::int64_t row;
  std::int64_t kv_head;
  std::int64_t begin;
  std::int64_t end;  ///< At most `begin` where a split has no keys: nobody reads what it leaves.
  PieceTokens<Element> tokens;
};

/// The query heads of a key, filled up to 1, 2 or 4: each key and value is loaded once for all of them.
template <std::int64_t Heads>
struct OfHeads {
  /// N numbers stand in a register.
  template <typename Element, std::int64_t N>
  struct Attend {
    using Vector = typename simd::Lanes<N>::Floats;
    using Whole = decltype(Vector{} < Vector{});  ///< Integers of the same width.
    /// Keys that are multiplied at once: the sums of all heads fill the lanes of one register.
    static constexpr std::int64_t kKeysAtOnce = N / Heads;
    /// Registers of a value that are added up at once: with all heads as many as there are.
    static constexpr std::int64_t kVectorsAtOnce = N == kLanes ? 4 : 8 / Heads;

    /// scores[head][j] = query of the head . key j, for `count` keys of a tile; `query` is [Heads][width].
    template <typename From>
    [[gnu::always_inline]] static void score(const float* query, const NumberRows<From>& keys, std::int64_t width,
                                             std::int64_t count, float* scores) {
      for (std::int64_t first = 0; first < count; first += kKeysAtOnce) {
        const From* key[kKeysAtOnce];
        Vector sums[N] = {};
#pragma GCC unroll 16
        for (std::int64_t j = 0; j < kKeysAtOnce; ++j) {
          key[j] = keys.first + (first + j < count ? first + j : count - 1) * keys.stride;
        }
        for (std::int64_t at = 0; at < width; at += N) {
          Vector elements[Heads];
#pragma GCC unroll 4
          for (std::int64_t head = 0; head < Heads; ++head) {
            elements[head] = simd::load<N>(query + head * width + at);
          }
#pragma GCC unroll 16
          for (std::int64_t j = 0; j < kKeysAtOnce; ++j) {
            const Vector of_key = simd::load<N>(key[j] + at);
#pragma GCC unroll 4
            for (std::int64_t head = 0; head < Heads; ++head) {
              sums[head * kKeysAtOnce + j] += elements[head] * of_key;
            }
          }
        }
        float each[N];
        simd::store(each, simd::sums_of_lanes<N>(sums));
#pragma GCC unroll 4
        for (std::int64_t head = 0; head < Heads; ++head) {
          std::memcpy(scores + head * kLaneTile + first, each + head * kKeysAtOnce, kKeysAtOnce * sizeof(float));
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
      most = simd::largest(highest);
      Vector weights{};
      for (std::int64_t at = 0; at < count; at += N) {
        const Whole there = lane < static_cast<std::int32_t>(count - at);
        const Vector weight = simd::exp(simd::load<N>(scores + at) - most);
        const Vector seen = there ? weight : Vector{};
        simd::store(scores + at, seen);
        weights += seen;
      }
      const float shrink = before == most ? 1.0f : lane_exp(before - most);
      total = total * shrink + simd::sum(weights);
      for (std::int64_t at = 0; shrink != 1.0f && at < width; ++at) {
        sums[at] *= shrink;
      }
    }

    /// sums[head] += weights[head][j] * value[j], for the elements of `Vectors` registers from `at` on.
    template <std::int64_t Vectors, typename From>
    [[gnu::always_inline]] static void gather_block(const float* weights, const NumberRows<From>& values,
                                                    std::int64_t at, std::int64_t count, std::int64_t width,
                                                    float* sums) {
      Vector total[Heads][Vectors];
#pragma GCC unroll 4
      for (std::int64_t head = 0; head < Heads; ++head) {
#pragma GCC unroll 8
        for (std::int64_t v = 0; v < Vectors; ++v) {
          total[head][v] = simd::load<N>(sums + head * width + at + v * N);
        }
      }
      for (std::int64_t j = 0; j < count; ++j) {
        const From* value = values.first + j * values.stride + at;
#pragma GCC unroll 8
        for (std::int64_t v = 0; v < Vectors; ++v) {
          const Vector of_value = simd::load<N>(value + v * N);
#pragma GCC unroll 4
          for (std::int64_t head = 0; head < Heads; ++head) {
            total[head][v] += of_value * weights[head * kLaneTile + j];
          }
        }
      }
#pragma GCC unroll 4
      for (std::int64_t head = 0; head < Heads; ++head) {
#pragma GCC unroll 8
        for (std::int64_t v = 0; v < Vectors; ++v) {
          simd::store(sums + head * width + at + v * N, total[head][v]);
        }
      }
    }

    template <typename From>
    [[gnu::always_inline]] static void gather(const float* weights, const NumberRows<From>& values, std::int64_t width,
                                              std::int64_t count, float* sums) {
      std::int64_t at = 0;
      for (; at + kVectorsAtOnce * N <= width; at += kVectorsAtOnce * N) {
        gather_block<kVectorsAtOnce>(weights, values, at, count, width, sums);
      }
      for (; at < width; at += N) {
        gather_block<1>(weights, values, at, count, width, sums);
      }
    }

    /// Adds a tile of keys and values to the parts of all heads.
    template <typename From>
    [[gnu::always_inline]] static void attend(const DecodeAttention& a, const float* query,
                                              const NumberRows<From>& keys, const NumberRows<From>& values,
                                              std::int64_t count, const Partial& partial) {
      const std::int64_t width = filled(a.head_dim);
      alignas(64) float scores[Heads * kLaneTile];
      score(query, keys, width, count, scores);
      for (std::int64_t head = 0; head < Heads; ++head) {
        if (head < a.shared_heads) {
          weigh(scores + head * kLaneTile, count, width, partial.most[head], partial.total[head],
                partial.values + head * width);
        } else {
          std::fill_n(scores + head * kLaneTile, kLaneTile, 0.0f);
        }
      }
      gather(scores, values, width, count, partial.values);
    }

    [[gnu::always_inline]] static void run(const DecodeAttention* attention, std::int64_t first, std::int64_t last) {
      const DecodeAttention& a = *attention;
      const std::int64_t k = a.head_dim;
      const std::int64_t width = filled(k);
      const std::int64_t heads = a.shared_heads;
      alignas(64) float query[Heads * kMostHeadDim] = {};
      alignas(64) float key_room[kLaneTile * kMostHeadDim];
      alignas(64) float value_room[kLaneTile * kMostHeadDim];
      for (std::int64_t item = first; item < last; ++item) {
        const Piece<Element> piece(a, item);
        if (piece.begin >= piece.end) {
          continue;
        }
        const Partial partial = partial_of(a, item, 0);
        const auto* from =
            static_cast<const Element*>(a.query) + piece.row * a.query_stride + piece.kv_head * heads * k;
        // Finite, so that the weights of the first tile are not computed from -inf.
        std::fill_n(partial.most, Heads, -std::numeric_limits<float>::max());
        std::fill_n(partial.total, Heads, 0.0f);
        std::fill_n(partial.values, Heads * width, 0.0f);
        for (std::int64_t head = 0; head < heads; ++head) {
          for (std::int64_t at = 0; at < k; at += kLanes) {
            simd::store_wide(query + head * width + at, simd::load_wide<N>(from + head * k + at, k - at) * a.scale);
          }
        }
        const std::optional<Piece<Element>> next =
            item + 1 < last ? std::optional(Piece<Element>(a, item + 1)) : std::nullopt;
        const std::int64_t all = piece.end - piece.begin;
        for (std::int64_t tile = 0; tile < all; tile += kLaneTile) {
          // The first piece runs after its own prefetches, and each of the others was asked for by the one before it.
          if (item == first) {
            piece.prefetch(tile + kLaneTile, tile + 2 * kLaneTile, k);
          }
          if (next) {
            next->prefetch(tile, tile + kLaneTile < all ? tile + kLaneTile : kSplitKeys, k);
          }
          const std::int64_t count = std::min(all - tile, kLaneTile);
          const std::int64_t stride = piece.tokens.stride;
          const Element* const keys = piece.tokens.keys + tile * stride;
          const Element* const values = piece.tokens.values + tile * stride;
          if (k == width) {
            attend(a, query, NumberRows<Element>{keys, stride}, NumberRows<Element>{values, stride}, count, partial);
          } else {
            attend(a, query, widened<N>(keys, stride, count, k, width, key_room),
                   widened<N>(values, stride, count, k, width, value_room), count, partial);
          }
        }
      }
    }
  };
};

}  // namespace

void attend_splits_of_few_heads(const DecodeAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa) {
  switch (attention.shared_heads) {
    case 1: return simd::run_typed_wide<OfHeads<1>::Attend>(attention.dtype, isa, &attention, first, last);
    case 2: return simd::run_typed_wide<OfHeads<2>::Attend>(attention.dtype, isa, &attention, first, last);
    default: return simd::run_typed_wide<OfHeads<4>::Attend>(attention.dtype, isa, &attention, first, last);
  }
}

}  // namespace decodelab
