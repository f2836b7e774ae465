// The race on a CPU: a chunk of tokens at a time, in loops that the compiler turns into vectors.
#include "variants/rng/philox_race.h"

#include <algorithm>

namespace decodelab {
namespace {

[[gnu::always_inline]] inline void fill_words(std::int64_t chunk, std::int64_t seed, std::int64_t step,
                                              std::uint32_t* words) {
  for (std::int64_t lane = 0; lane < kRaceLanes; ++lane) {
    const PhiloxWords random = race_words(chunk, lane, seed, step);
    words[lane] = random.word[0];
    words[kRaceLanes + lane] = random.word[1];
    words[2 * kRaceLanes + lane] = random.word[2];
    words[3 * kRaceLanes + lane] = random.word[3];
  }
}

[[gnu::always_inline]] inline std::uint64_t race(const float* probabilities, std::int64_t first, std::int64_t last,
                                                 std::int64_t seed, std::int64_t step) {
  std::uint64_t best = race_key(0, first);
  alignas(64) std::uint32_t words[kRaceChunk];
  alignas(64) std::int32_t scores[kRaceChunk];
  for (std::int64_t begin = first; begin < last; begin += kRaceChunk) {
    const std::int64_t count = std::min(kRaceChunk, last - begin);
    const float* mine = probabilities + begin;
    // After top-k nearly all chunks are empty.
    std::int32_t any = 0;
    for (std::int64_t index = 0; index < count; ++index) {
      any |= bits_of(mine[index]);
    }
    if (any == 0) {
      continue;
    }
    fill_words(begin / kRaceChunk, seed, step, words);
    std::int32_t highest = 0;
    for (std::int64_t index = 0; index < count; ++index) {
      scores[index] = bits_of(mine[index] / exponential_float(words[index]));
      highest = std::max(highest, scores[index]);
    }
    if (race_key(highest, begin) > best) {
      const auto winner = std::find(scores, scores + count, highest) - scores;
      best = std::max(best, race_key(highest, begin + winner));
    }
  }
  return best;
}

std::uint64_t race_portable(const float* probabilities, std::int64_t first, std::int64_t last, std::int64_t seed,
                            std::int64_t step) {
  return race(probabilities, first, last, seed, step);
}

#if defined(__x86_64__)
// Compiled without "fma": contracted operations would round differently.
[[gnu::target("avx2")]] std::uint64_t race_avx2(const float* probabilities, std::int64_t first, std::int64_t last,
                                                std::int64_t seed, std::int64_t step) {
  return race(probabilities, first, last, seed, step);
}
#endif

}  // namespace

std::uint64_t race_on_cpu(const float* probabilities, std::int64_t first, std::int64_t last, std::int64_t seed,
                          std::int64_t step) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return race_avx2(probabilities, first, last, seed, step);
  }
#endif
  return race_portable(probabilities, first, last, seed, step);
}

}  // namespace decodelab
