// Decode attention on tiles (AMX): keys are multiplied in the order of the cache, sixteen keys by sixteen query heads
// at a time, and values after two rows at a time have been interleaved.
#include <limits>

#include "engine/kernels/attention/decode_partials.h"
#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/products/amx_tiles.h"

#if defined(__x86_64__)

namespace decodelab {
namespace {

using namespace amx;
using simd::Bfloat16;
using simd::Floats;
using simd::kLanes;
using simd::Words;

/// Keys and elements that are multiplied together.
constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kBlocks = kSplitKeys / kBlock;
constexpr std::int64_t kSteps = kMostHeadDim / kBlock;

/// Memory of one thread.
struct Scratch {
  alignas(kTileBytes) std::byte query[kSteps * kTileWeights];     ///< [k / 32][16 pairs of elements][16 heads][2] bf16
  alignas(kTileBytes) float scores[kSplitKeys * kLanes];          ///< [keys][16 heads]
  alignas(kTileBytes) std::byte weights[kBlocks * kTileWeights];  ///< [keys / 32][16 heads][32 keys] bf16
  alignas(kTileBytes) std::byte tail[kBlock * kMostHeadDim * kInputBytes];  ///< [32 keys][k] bf16
  alignas(kTileBytes) std::byte values[kStepBytes];  ///< [2][16 pairs of keys][16 elements][2] bf16
};

/// Refers to up to 256 tokens of one row and key head.
struct Tokens {
  const Bfloat16* begin;
  std::int64_t stride;  ///< Elements from one token to the next.
  std::int64_t count;

  std::int64_t blocks() const { return divided_up(count, kBlock); }
};

void pack_query(const Bfloat16* from, std::int64_t heads, std::int64_t head_dim, std::byte* to) {
  std::memset(to, 0, static_cast<std::size_t>(head_dim / kBlock * kTileWeights));
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t at = 0; at < head_dim; at += 2) {
      std::memcpy(to + (at / 2 * kLanes + head) * 2 * kInputBytes, from + head * head_dim + at, 2 * kInputBytes);
    }
  }
}

/// Computes the scores of 32 keys, not yet scaled. Scores past the last key are 0.
[[gnu::target("amx-tile,amx-bf16")]] void score(const Tokens& keys, std::int64_t block, std::int64_t head_dim,
                                                Scratch& scratch) {
  const auto* from = reinterpret_cast<const std::byte*>(keys.begin + block * kBlock * keys.stride);
  std::int64_t stride = keys.stride * kInputBytes;
  const std::int64_t left = keys.count - block * kBlock;
  if (left < kBlock) {
    // Memory past the last key may hold anything, or may not be mapped.
    const std::int64_t row_bytes = head_dim * kInputBytes;
    std::memset(scratch.tail, 0, static_cast<std::size_t>(kBlock * row_bytes));
    for (std::int64_t key = 0; key < left; ++key) {
      std::memcpy(scratch.tail + key * row_bytes, from + key * stride, static_cast<std::size_t>(row_bytes));
    }
    from = scratch.tail;
    stride = row_bytes;
  }
  _tile_zero(0);
  _tile_zero(1);
  for (std::int64_t step = 0; step < head_dim / kBlock; ++step, from += kTileBytes) {
    _tile_loadd(6, scratch.query + step * kTileWeights, kTileBytes);
    _tile_loadd(4, from, stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, from + kTileRows * stride, stride);
    _tile_dpbf16ps(1, 5, 6);
  }
  float* const scores = scratch.scores + block * kBlock * kLanes;
  _tile_stored(0, scores, kTileBytes);
  _tile_stored(1, scores + kTileRows * kLanes, kTileBytes);
}

/// Transposes lanes and rows, by blocks of 8, 4, 2 and 1.
[[gnu::target(DECODELAB_AVX512), gnu::always_inline]] inline void transpose(__m512i (&rows)[kLanes]) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#pragma GCC unroll 4
  for (int size = 8; size > 0; size /= 2) {
    const __mmask16 of_second = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(size));
    // Indices from 16 on select from the second register.
    const __m512i lower = _mm512_mask_add_epi32(lane, of_second, lane, _mm512_set1_epi32(16 - size));
    const __m512i upper =
        _mm512_mask_add_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(size)), of_second, lane, _mm512_set1_epi32(16));
#pragma GCC unroll 16
    for (int row = 0; row < static_cast<int>(kLanes); ++row) {
      if ((row & size) != 0) {
        continue;
      }
      const __m512i first = rows[row];
      const __m512i second = rows[row + size];
      rows[row] = _mm512_permutex2var_epi32(first, lower, second);
      rows[row + size] = _mm512_permutex2var_epi32(first, upper, second);
    }
  }
}

/// Turns scores into weights in bf16: a head's weights of 32 keys are contiguous, with zeros past the last key. `most`
/// and `total` of a partial refer to scaled scores.
[[gnu::target(DECODELAB_AVX512)]] void weigh(std::int64_t count, float scale, const Partial& partial,
                                             Scratch& scratch) {
  constexpr float kLog2E = 1.44269504088896341f;
  Floats most = simd::load(scratch.scores);
  for (std::int64_t key = 1; key < count; ++key) {
    most = simd::max(most, simd::load(scratch.scores + key * kLanes));
  }
  Floats total{};
  const auto weight_of = [&](std::int64_t key) __attribute__((always_inline)) {
    if (key >= count) {
      return Floats{};
    }
    const Floats weight = simd::exp2((simd::load(scratch.scores + key * kLanes) - most) * (scale * kLog2E));
    total += weight;
    return weight;
  };
  for (std::int64_t block = 0; block * kBlock < count; ++block) {
    __m512i rows[kLanes];
    for (std::int64_t pair = 0; pair < kLanes; ++pair) {
      const std::int64_t key = block * kBlock + 2 * pair;
      const Words first = simd::bfloat16_words(weight_of(key));
      rows[pair] = reinterpret_cast<__m512i>((simd::bfloat16_words(weight_of(key + 1)) << 16) | first);
    }
    transpose(rows);
    std::byte* const to = scratch.weights + block * kTileWeights;
    for (std::int64_t head = 0; head < kLanes; ++head) {
      _mm512_store_si512(to + head * kTileBytes, rows[head]);
    }
  }
  simd::store(partial.most, most * scale);
  simd::store(partial.total, total);
}

/// Loads 32 elements of a token, or zeros from token `count` on.
[[gnu::target(DECODELAB_AVX512), gnu::always_inline]] inline __m512i elements_of(const Bfloat16* from,
                                                                                 std::int64_t stride,
                                                                                 std::int64_t token,
                                                                                 std::int64_t count) {
  return token < count ? _mm512_loadu_si512(from + token * stride) : _mm512_setzero_si512();
}

/// Packs 32 elements of 32 values, pairs of values interleaved, with zeros past the last value.
[[gnu::target(DECODELAB_AVX512), gnu::always_inline]] inline void interleave(const Tokens& values, std::int64_t block,
                                                                             std::int64_t at, std::byte* to) {
  const __m512i step = _mm512_set1_epi32(0x00200000);  // element i of the first register beside element i of the second
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i lower = _mm512_or_si512(step, _mm512_or_si512(lane, _mm512_slli_epi32(lane, 16)));
  const __m512i upper = _mm512_add_epi16(lower, _mm512_set1_epi16(kTileOutputs));
  const Bfloat16* const from = values.begin + block * kBlock * values.stride + at;
  const std::int64_t left = values.count - block * kBlock;
  for (std::int64_t pair = 0; pair < kTileRows; ++pair) {
    const __m512i first = elements_of(from, values.stride, 2 * pair, left);
    const __m512i second = elements_of(from, values.stride, 2 * pair + 1, left);
    std::byte* const row = to + pair * kTileBytes;
    _mm512_store_si512(row, _mm512_permutex2var_epi16(first, lower, second));
    _mm512_store_si512(row + kTileWeights, _mm512_permutex2var_epi16(first, upper, second));
  }
}

[[gnu::target("amx-tile,amx-bf16," DECODELAB_AVX512)]] void gather(const Tokens& values, std::int64_t head_dim,
                                                                   Scratch& scratch, float* sums) {
  const auto sums_bytes = head_dim * static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t at = 0; at < head_dim; at += kBlock) {
    _tile_zero(0);
    _tile_zero(1);
    for (std::int64_t block = 0; block < values.blocks(); ++block) {
      interleave(values, block, at, scratch.values);
      _tile_loadd(4, scratch.weights + block * kTileWeights, kTileBytes);
      _tile_loadd(6, scratch.values, kTileBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, scratch.values + kTileWeights, kTileBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, sums + at, sums_bytes);
    _tile_stored(1, sums + at + kTileOutputs, sums_bytes);
  }
}

void attend_split(const DecodeAttention& a, std::int64_t item, Scratch& scratch) {
  const std::int64_t split = item % a.splits;
  const std::int64_t kv_head = item / a.splits % a.kv_heads;
  const std::int64_t row = item / a.splits / a.kv_heads;
  const std::int64_t begin = first_key(a, row) + split * kSplitKeys;
  const std::int64_t count = std::min(a.held[row] + 1 - begin, kSplitKeys);
  const auto* const query =
      static_cast<const Bfloat16*>(a.query) + row * a.query_stride + kv_head * a.shared_heads * a.head_dim;
  for (std::int64_t group = 0; group < groups(a); ++group) {
    const Partial partial = partial_of(a, item, group);
    if (count <= 0) {
      std::fill_n(partial.most, kLanes, -std::numeric_limits<float>::infinity());
      std::fill_n(partial.total, kLanes * (1 + a.head_dim), 0.0F);
      continue;
    }
    const std::int64_t first = group * kLanes;
    pack_query(query + first * a.head_dim, std::min(a.shared_heads - first, kLanes), a.head_dim, scratch.query);
    const PieceTokens<Bfloat16> tokens = piece_tokens<Bfloat16>(a, row, kv_head, begin);
    const Tokens keys{tokens.keys, tokens.stride, count};
    for (std::int64_t block = 0; block < keys.blocks(); ++block) {
      score(keys, block, a.head_dim, scratch);
    }
    weigh(count, a.scale, partial, scratch);
    gather({tokens.values, tokens.stride, count}, a.head_dim, scratch, partial.values);
  }
}

}  // namespace

bool fits_tiles(const DecodeAttention& a) { return a.dtype == ElementType::bfloat16 && a.head_dim % kBlock == 0; }

void attend_splits_on_tiles(const DecodeAttention& a, std::int64_t first, std::int64_t last) {
  const Tiles tiles(kTileRows, kBlockTiles);
  Scratch scratch;
  for (std::int64_t item = first; item < last; ++item) {
    attend_split(a, item, scratch);
  }
}

}  // namespace decodelab

#else

namespace decodelab {
bool fits_tiles(const DecodeAttention&) { return false; }
void attend_splits_on_tiles(const DecodeAttention&, std::int64_t, std::int64_t) {}
}  // namespace decodelab

#endif
