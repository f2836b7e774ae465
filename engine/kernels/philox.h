// Philox4x32-10, the counter-based generator, and the step from its bits to a float: the same bits on CPU and GPU.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define DECODELAB_HOST_DEVICE __host__ __device__
#else
#define DECODELAB_HOST_DEVICE
#endif

namespace decodelab {

// Salmon's multipliers, and the steps of the key: the golden ratio and sqrt(3) - 1, times 2^32.
constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
constexpr std::uint32_t kPhiloxMultiplier2 = 0xCD9E8D57u;
constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9u;
constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85u;
constexpr int kPhiloxRounds = 10;

/// Four 32-bit words: a counter before the rounds, random bits after them.
struct PhiloxWords {
  std::uint32_t word[4];
};

/// Runs the ten rounds of Philox4x32 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", SC11,
/// doi:10.1145/2063384.2063405).
///
/// Returns the four words of `counter` under the 64-bit `key` (its low half is the paper's first key word). The
/// function is pure: any element of a stream can be computed without the ones before it. Constants and key schedule are
/// those of the authors' Random123 (philox.h), so its known answers hold.
DECODELAB_HOST_DEVICE inline PhiloxWords philox4x32(PhiloxWords counter, std::uint64_t key) {
  std::uint32_t key_0 = static_cast<std::uint32_t>(key);
  std::uint32_t key_1 = static_cast<std::uint32_t>(key >> 32);
#if defined(__GNUC__) && !defined(__CUDACC__)
#pragma GCC unroll 10  // g++ makes vectors of loops over counters only where no loop is left inside.
#endif
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product_0 = std::uint64_t{kPhiloxMultiplier0} * counter.word[0];
    const std::uint64_t product_1 = std::uint64_t{kPhiloxMultiplier2} * counter.word[2];
    const std::uint32_t word_0 = static_cast<std::uint32_t>(product_1 >> 32) ^ counter.word[1] ^ key_0;
    const std::uint32_t word_2 = static_cast<std::uint32_t>(product_0 >> 32) ^ counter.word[3] ^ key_1;
    counter.word[0] = word_0;
    counter.word[1] = static_cast<std::uint32_t>(product_1);
    counter.word[2] = word_2;
    counter.word[3] = static_cast<std::uint32_t>(product_0);
    key_0 += kPhiloxWeyl0;
    key_1 += kPhiloxWeyl1;
  }
  return counter;
}

/// Returns the counter of block `block` (four values) of the stream `stream`: two 64-bit numbers, low words first.
DECODELAB_HOST_DEVICE inline PhiloxWords philox_counter(std::uint64_t block, std::uint64_t stream) {
  return {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
           static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}};
}

/// Returns mean + half_width * u with u uniform in [-1, 1), from 32 random bits.
///
/// The top 24 bits, read as a signed integer, become a float without rounding, and the division by 2^23 does not round
/// either. The one fused multiply-add that remains is rounded once by definition of IEEE 754: no compiler may contract
/// or split it, so that every machine gives the same bits.
DECODELAB_HOST_DEVICE inline float uniform_float(std::uint32_t bits, float mean, float half_width) {
  const float unit = static_cast<float>(static_cast<std::int32_t>(bits) >> 8) * (1.0f / 8388608.0f);
  return std::fma(half_width, unit, mean);
}

/// Returns a number in [0, 1) with 53 random bits, all that a double holds exactly.
inline double unit_double(std::uint32_t high, std::uint32_t low) {
  constexpr double kUnit = 1.0 / static_cast<double>(std::uint64_t{1} << 53);
  return static_cast<double>((std::uint64_t{high} << 21) | (low >> 11)) * kUnit;
}

}  // namespace decodelab
