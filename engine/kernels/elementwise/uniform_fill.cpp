// Fills an array with the values of a seed and a stream, with AVX2 where the machine has it.
#include "engine/kernels/elementwise/uniform_fill.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/kernels/philox.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace decodelab {
namespace {

// Holds what the value of an element depends on, except its index.
struct Stream {
  std::uint64_t key;
  std::uint64_t number;
  float mean;
  float half_width;
};

// The plain rule; the vector code below gives the same bits.
void fill_plainly(std::span<float> out, std::uint64_t first_index, const Stream& stream) {
  std::size_t i = 0;
  while (i < out.size()) {
    const std::uint64_t index = first_index + i;
    const PhiloxWords words = philox4x32(philox_counter(index / 4, stream.number), stream.key);
    for (std::uint64_t word = index % 4; word < 4 && i < out.size(); ++word, ++i) {
      out[i] = uniform_float(words.word[word], stream.mean, stream.half_width);
    }
  }
}

#if defined(__x86_64__)

// Independent chains of rounds. With 1 to 4 an AMD EPYC with AVX2 fills 0.96, 1.20, 1.12 and 0.91 G values/s.
constexpr int kVectors = 2;
constexpr std::size_t kValuesAtOnce = 16 * kVectors;  // A vector holds 4 blocks of 4 values.

// Holds the words of 4 blocks. Each 64-bit lane holds one 32-bit word of one block, with arbitrary bits above it:
// vpmuludq reads the low halves only, so that a round needs no shuffles. 3 times as fast as what g++ 12 makes of the
// plain rule.
struct Blocks {
  __m256i word_0;
  __m256i word_1;
  __m256i word_2;
  __m256i word_3;
};

__attribute__((target("avx2,fma"))) inline __m256i broadcast(std::uint64_t value) {
  return _mm256_set1_epi64x(static_cast<long long>(value));
}

__attribute__((target("avx2,fma"))) inline Blocks counters(std::uint64_t block, std::uint64_t stream) {
  const __m256i low = _mm256_add_epi64(broadcast(block), _mm256_set_epi64x(3, 2, 1, 0));
  return {low, _mm256_srli_epi64(low, 32), broadcast(stream), broadcast(stream >> 32)};
}

__attribute__((target("avx2,fma"))) inline void mix(Blocks& blocks, std::uint32_t key_0, std::uint32_t key_1) {
  const __m256i product_0 = _mm256_mul_epu32(blocks.word_0, broadcast(kPhiloxMultiplier0));
  const __m256i product_2 = _mm256_mul_epu32(blocks.word_2, broadcast(kPhiloxMultiplier2));
  blocks.word_0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product_2, 32), blocks.word_1), broadcast(key_0));
  blocks.word_2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product_0, 32), blocks.word_3), broadcast(key_1));
  blocks.word_1 = product_2;
  blocks.word_3 = product_0;
}

// uniform_float() of 8 words.
__attribute__((target("avx2,fma"))) inline void store(float* out, __m256i words, const Stream& stream) {
  const __m256 unit = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srai_epi32(words, 8)), _mm256_set1_ps(1.0f / 8388608.0f));
  _mm256_storeu_ps(out, _mm256_fmadd_ps(_mm256_set1_ps(stream.half_width), unit, _mm256_set1_ps(stream.mean)));
}

// Puts the words of each block side by side.
__attribute__((target("avx2,fma"))) inline void store(float* out, const Blocks& blocks, const Stream& stream) {
  const __m256i words_01 = _mm256_blend_epi32(blocks.word_0, _mm256_slli_epi64(blocks.word_1, 32), 0xAA);
  const __m256i words_23 = _mm256_blend_epi32(blocks.word_2, _mm256_slli_epi64(blocks.word_3, 32), 0xAA);
  const __m256i blocks_02 = _mm256_unpacklo_epi64(words_01, words_23);
  const __m256i blocks_13 = _mm256_unpackhi_epi64(words_01, words_23);
  store(out, _mm256_permute2x128_si256(blocks_02, blocks_13, 0x20), stream);
  store(out + 8, _mm256_permute2x128_si256(blocks_02, blocks_13, 0x31), stream);
}

__attribute__((target("avx2,fma"))) void fill_groups(float* out, std::size_t groups, std::uint64_t block,
                                                     const Stream& stream) {
  const Stream local = stream;  // Stores to `out` could change `stream`, as far as the compiler knows.
  for (std::size_t group = 0; group < groups; ++group, block += 4 * kVectors, out += kValuesAtOnce) {
    Blocks blocks[kVectors];
    for (int i = 0; i < kVectors; ++i) {
      blocks[i] = counters(block + 4 * static_cast<std::uint64_t>(i), local.number);
    }
    auto key_0 = static_cast<std::uint32_t>(local.key);
    auto key_1 = static_cast<std::uint32_t>(local.key >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      for (Blocks& each : blocks) {
        mix(each, key_0, key_1);
      }
      key_0 += kPhiloxWeyl0;
      key_1 += kPhiloxWeyl1;
    }
    for (int i = 0; i < kVectors; ++i) {
      store(out + 16 * i, blocks[i], local);
    }
  }
}

// Fills whole groups from an index that is a multiple of 4, and returns how many elements that was.
std::size_t fill_vectors(std::span<float> out, std::uint64_t first_index, const Stream& stream) {
  static const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!supported) {
    return 0;
  }
  const std::size_t groups = out.size() / kValuesAtOnce;
  fill_groups(out.data(), groups, first_index / 4, stream);
  return groups * kValuesAtOnce;
}

#else

std::size_t fill_vectors(std::span<float>, std::uint64_t, const Stream&) { return 0; }

#endif

}  // namespace

void fill_uniform(std::span<float> out, std::uint64_t seed, std::uint64_t stream_number, std::int64_t first_index,
                  float mean, float half_width) {
  if (first_index < 0) {
    throw std::invalid_argument(fmt::format("fill_uniform: expected first_index from 0 up, got {}", first_index));
  }
  const Stream stream{.key = seed, .number = stream_number, .mean = mean, .half_width = half_width};
  auto index = static_cast<std::uint64_t>(first_index);
  const std::size_t head = std::min<std::size_t>(out.size(), (4 - index % 4) % 4);
  fill_plainly(out.first(head), index, stream);
  out = out.subspan(head);
  index += head;
  const std::size_t vectors = fill_vectors(out, index, stream);
  fill_plainly(out.subspan(vectors), index + vectors, stream);
}

}  // namespace decodelab
