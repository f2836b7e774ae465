// The loops of prefill attention: products of 32 by 32 on tiles (AMX) or by dot products (AVX-512), the softmax between
// them.
#include "engine/kernels/attention/prefill_attention.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/round_up.h"
#include "engine/kernels/attention/prefill_queries.h"
#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/products/amx_tiles.h"
#include "engine/kernels/simd.h"

namespace decodelab {
namespace {

/// Size of a block: queries, keys and outputs that are multiplied together.
constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kElementBytes = 2;
/// Bytes of a step of 32 inputs by 32 outputs, or by 32 queries.
constexpr std::int64_t kBlockBytes = kBlock * kBlock * kElementBytes;

std::int64_t head_steps(const PrefillAttention& a) { return divided_up(a.head_dim, kBlock); }
std::int64_t key_blocks(const PrefillAttention& a) { return divided_up(a.most_keys, kBlock); }
std::int64_t query_blocks(const PrefillAttention& a) { return divided_up(a.tokens * a.shared_heads, kBlock); }
/// Bytes of the packed keys, or of the packed values, of one row and key head.
std::int64_t packed_bytes(const PrefillAttention& a) { return key_blocks(a) * head_steps(a) * kBlockBytes; }

}  // namespace

std::int64_t packed_key_bytes(const PrefillAttention& a) { return 2 * a.batch_size * a.kv_heads * packed_bytes(a); }
std::int64_t score_bytes(const PrefillAttention& a) {
  // Scores, weights, queries, and the sums of values.
  constexpr std::int64_t kScoreBytes = kBlock * kBlock * static_cast<std::int64_t>(sizeof(float));
  return key_blocks(a) * (kScoreBytes + kBlockBytes) + head_steps(a) * kBlockBytes + kScoreBytes;
}
std::int64_t pack_items(const PrefillAttention& a) { return a.batch_size * a.kv_heads * key_blocks(a); }
std::int64_t query_items(const PrefillAttention& a) { return a.batch_size * a.kv_heads * query_blocks(a); }

#if defined(__x86_64__)
namespace {

using namespace amx;
using simd::Bfloat16;
using simd::Floats;
using simd::kLanes;

/// Points to the packed keys and values of one row and key head. Keys are the weights of products with queries, [keys /
/// 32][k / 32][2][16 pairs of elements][16 keys][2]; values are the weights of products with scores, [k / 32][keys /
/// 32][2][16 pairs of keys][16 elements][2].
struct PackedHead {
  PackedHead(const PrefillAttention& a, std::int64_t head)
      : keys(static_cast<std::byte*>(a.packed) + 2 * head * packed_bytes(a)),
        values(keys + packed_bytes(a)),
        steps(head_steps(a)),
        blocks(key_blocks(a)) {}

  std::byte* keys;
  std::byte* values;
  std::int64_t steps;
  std::int64_t blocks;

  std::byte* keys_at(std::int64_t block, std::int64_t step) const {
    return keys + (block * steps + step) * kBlockBytes;
  }
  std::byte* values_at(std::int64_t step, std::int64_t block) const {
    return values + (step * blocks + block) * kBlockBytes;
  }
};

/// Returns element (input, output) of such weights in a block of 32 by 32.
Bfloat16& weight_at(std::byte* block, std::int64_t input, std::int64_t output) {
  auto* const elements = reinterpret_cast<Bfloat16*>(block);
  return elements[output / kTileOutputs * (kBlock * kTileOutputs) + input / 2 * (2 * kTileOutputs) +
                  output % kTileOutputs * 2 + input % 2];
}

void pack_block(const PrefillAttention& a, std::int64_t head, std::int64_t block) {
  const PackedHead packed(a, head);
  const std::int64_t row = head / a.kv_heads;
  const std::int64_t offset = row * a.row_stride + head % a.kv_heads * a.head_dim;
  const std::int64_t keys = std::min(kBlock, a.past[row] + a.added[row] - block * kBlock);
  for (std::int64_t step = 0; step < packed.steps; ++step) {
    std::byte* const to_keys = packed.keys_at(block, step);
    std::byte* const to_values = packed.values_at(step, block);
    const std::int64_t elements = std::min(kBlock, a.head_dim - step * kBlock);
    if (keys < kBlock || elements < kBlock) {
      std::memset(to_keys, 0, kBlockBytes);
      std::memset(to_values, 0, kBlockBytes);
    }
    for (std::int64_t key = 0; key < keys; ++key) {
      const std::int64_t from = offset + (block * kBlock + key) * a.token_stride + step * kBlock;
      const auto* const key_elements = static_cast<const Bfloat16*>(a.keys) + from;
      const auto* const value_elements = static_cast<const Bfloat16*>(a.values) + from;
      for (std::int64_t at = 0; at < elements; ++at) {
        weight_at(to_keys, at, key) = key_elements[at];
        weight_at(to_values, key, at) = value_elements[at];
      }
    }
  }
}

/// Memory of one thread for 32 queries.
struct Scratch {
  explicit Scratch(const PrefillAttention& a) {
    thread_local std::vector<TileLine> lines;
    std::byte* const begin = lines_of(lines, divided_up(score_bytes(a), kTileBytes));
    width = key_blocks(a) * kBlock;
    queries = begin;
    weights = queries + head_steps(a) * kBlockBytes;
    scores = reinterpret_cast<float*>(weights + key_blocks(a) * kBlockBytes);
    sums = scores + kBlock * width;
  }

  std::byte* queries;  ///< [k / 32][32 queries][32 elements] bf16
  std::byte* weights;  ///< [keys / 32][32 queries][32 keys] bf16
  float* scores;       ///< [32 queries][width]
  float* sums;         ///< [32 queries][32 elements]
  std::int64_t width;
};

/// Writes out[32 rows][32], rows `width` apart: the sum over `steps` of [32 rows][32 inputs] times [32 inputs][32
/// outputs], in the orders of Scratch and PackedHead, where consecutive steps are kBlockBytes apart.
using Multiply = void (*)(const std::byte* rows, const std::byte* weights, std::int64_t steps, float* out,
                          std::int64_t width);

[[gnu::target("amx-tile,amx-bf16")]] void multiply_on_tiles(const std::byte* rows, const std::byte* weights,
                                                            std::int64_t steps, float* out, std::int64_t width) {
  zero_block();
  for (std::int64_t step = 0; step < steps; ++step) {
    add_step(rows + step * kBlockBytes, kTileRows, weights + step * kBlockBytes);
  }
  store_block(out, kTileRows, width);
}

/// Rows of a pass, each with two registers of sums; twelve dot products in flight keep both units of a core busy.
constexpr std::int64_t kPassRows = 8;

[[gnu::target("avx512f,avx512bw,avx512bf16")]] void multiply_by_dots(const std::byte* rows, const std::byte* weights,
                                                                     std::int64_t steps, float* out,
                                                                     std::int64_t width) {
  constexpr std::int64_t kHalfBytes = kBlockBytes / 2;  // of sixteen outputs
  for (std::int64_t first = 0; first < kBlock; first += kPassRows) {
    __m512 lower[kPassRows] = {};
    __m512 upper[kPassRows] = {};
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::byte* const inputs = rows + step * kBlockBytes + first * kTileBytes;
      for (std::int64_t pair = 0; pair < kBlock / 2; ++pair) {
        const std::byte* const pairs = weights + step * kBlockBytes + pair * kTileBytes;
        const auto to_lower = reinterpret_cast<__m512bh>(_mm512_loadu_si512(pairs));
        const auto to_upper = reinterpret_cast<__m512bh>(_mm512_loadu_si512(pairs + kHalfBytes));
#pragma GCC unroll 8
        for (std::int64_t row = 0; row < kPassRows; ++row) {
          std::int32_t both;
          std::memcpy(&both, inputs + row * kTileBytes + pair * 4, sizeof both);
          const auto input = reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
          lower[row] = _mm512_dpbf16_ps(lower[row], to_lower, input);
          upper[row] = _mm512_dpbf16_ps(upper[row], to_upper, input);
        }
      }
    }
#pragma GCC unroll 8
    for (std::int64_t row = 0; row < kPassRows; ++row) {
      _mm512_storeu_ps(out + (first + row) * width, lower[row]);
      _mm512_storeu_ps(out + (first + row) * width + kLanes, upper[row]);
    }
  }
}

bool has_tiles() { return best_cpu_isa(ElementType::bfloat16) == CpuIsa::amx_bf16; }

/// Writes the weights of the scores `hidden` to `keys`, with zeros before them and past them up to `shown`, not yet
/// divided by their sum, which is returned. A query's weights of 32 keys are contiguous; its weights of the next 32
/// keys follow those of all queries.
[[gnu::target(DECODELAB_AVX512)]] float weigh(float* scores, std::int64_t hidden, std::int64_t keys, std::int64_t shown,
                                              float scale, std::byte* weights) {
  constexpr float kLog2E = 1.44269504088896341f;
  const std::int64_t whole = keys / kLanes * kLanes;
  const simd::Ints lane{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const simd::Ints seen = lane < static_cast<std::int32_t>(keys - whole);
  // A hidden score as low as this has the weight 0.
  std::fill(scores, scores + hidden, -std::numeric_limits<float>::max());
  Floats most = simd::broadcast(scores[hidden]);
  for (std::int64_t at = 0; at < whole; at += kLanes) {
    most = simd::max(most, simd::load(scores + at));
  }
  if (whole < keys) {
    most = simd::max(most, seen ? simd::load(scores + whole) : most);
  }
  const float highest = simd::largest(most);
  Floats total{};
  for (std::int64_t at = 0; at < shown; at += kLanes) {
    Floats weight{};
    if (at < keys) {
      weight = simd::exp2((simd::load(scores + at) - highest) * (scale * kLog2E));
      if (at == whole) {
        weight = seen ? weight : Floats{};
      }
      total += weight;
    }
    simd::store(reinterpret_cast<Bfloat16*>(weights + at / kBlock * kBlockBytes) + at % kBlock, weight);
  }
  return simd::sum(total);
}

[[gnu::target(DECODELAB_AVX512)]] void write(const float* sums, float factor, std::int64_t elements, Bfloat16* out) {
  for (std::int64_t at = 0; at < elements; at += kLanes) {
    simd::store_up_to(out + at, simd::load(sums + at) * factor, elements - at);
  }
}

/// Computes 32 queries of one row and key head.
class QueryBlock {
 public:
  QueryBlock(const PrefillAttention& a, std::int64_t item)
      : a_(a),
        queries_(a, item, query_blocks(a), kBlock),
        packed_(a, queries_.head()),
        scratch_(a),
        multiply_(has_tiles() ? multiply_on_tiles : multiply_by_dots) {}

  void attend() {
    pack_queries();
    // No query of the block sees a key before this block of keys.
    const std::int64_t first = queries_.hidden_from(0) / kBlock;
    const std::int64_t blocks = divided_up(queries_.seen_by(queries_.count() - 1), kBlock) - first;
    for (std::int64_t block = 0; block < blocks; ++block) {
      multiply_(scratch_.queries, packed_.keys_at(first + block, 0), packed_.steps, scratch_.scores + block * kBlock,
                scratch_.width);
    }
    std::array<float, kBlock> totals{};
    for (std::int64_t query = 0; query < queries_.count(); ++query) {
      totals[static_cast<std::size_t>(query)] = weigh(
          scratch_.scores + query * scratch_.width, queries_.hidden_from(query) - first * kBlock,
          queries_.seen_by(query) - first * kBlock, blocks * kBlock, a_.scale, scratch_.weights + query * kTileBytes);
    }
    for (std::int64_t step = 0; step < packed_.steps; ++step) {
      multiply_(scratch_.weights, packed_.values_at(step, first), blocks, scratch_.sums, kBlock);
      for (std::int64_t query = 0; query < queries_.count(); ++query) {
        auto* const out = static_cast<Bfloat16*>(a_.out) + queries_.out_offset(query);
        write(scratch_.sums + query * kBlock, 1.0F / totals[static_cast<std::size_t>(query)],
              std::min(kBlock, a_.head_dim - step * kBlock), out + step * kBlock);
      }
    }
  }

 private:
  /// Rows of a block past the last query are multiplied too, but their results are not read.
  void pack_queries() const {
    for (std::int64_t query = 0; query < queries_.count(); ++query) {
      const auto* const from = static_cast<const Bfloat16*>(a_.query) + queries_.query_offset(query);
      for (std::int64_t step = 0; step < packed_.steps; ++step) {
        std::byte* const to = scratch_.queries + step * kBlockBytes + query * kTileBytes;
        const std::int64_t elements = std::min(kBlock, a_.head_dim - step * kBlock);
        if (elements == kBlock) {
          std::memcpy(to, from + step * kBlock, kTileBytes);
        } else {
          std::memset(to, 0, kTileBytes);
          std::memcpy(to, from + step * kBlock, static_cast<std::size_t>(elements * kElementBytes));
        }
      }
    }
  }

  const PrefillAttention& a_;
  PrefillQueries queries_;
  PackedHead packed_;
  Scratch scratch_;
  Multiply multiply_;
};

}  // namespace

bool has_prefill_attention() { return best_cpu_isa(ElementType::bfloat16) >= CpuIsa::avx512_bf16; }

void pack_keys(const PrefillAttention& a, std::int64_t first, std::int64_t last) {
  for (std::int64_t item = first; item < last; ++item) {
    pack_block(a, item / key_blocks(a), item % key_blocks(a));
  }
}

void attend_queries(const PrefillAttention& a, std::int64_t first, std::int64_t last) {
  std::optional<Tiles> tiles;
  if (has_tiles()) {
    tiles.emplace(kTileRows, kBlockTiles);
  }
  for (std::int64_t item = first; item < last; ++item) {
    QueryBlock(a, item).attend();
  }
}

#else

bool has_prefill_attention() { return false; }
void pack_keys(const PrefillAttention&, std::int64_t, std::int64_t) {}
void attend_queries(const PrefillAttention&, std::int64_t, std::int64_t) {}

#endif

}  // namespace decodelab
