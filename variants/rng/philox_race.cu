// The race on the device: one block of threads per row, one counter per thread and iteration.
#include "engine/kernels/launch.cuh"
#include "variants/rng/philox_race.cuh"
#include "variants/rng/philox_race.h"

namespace decodelab {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarp = 32;

__device__ std::uint64_t larger_in_warp(std::uint64_t key) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const auto other =
        static_cast<std::uint64_t>(__shfl_down_sync(0xffffffffu, static_cast<unsigned long long>(key), offset));
    key = other > key ? other : key;
  }
  return key;
}

__global__ void race(PhiloxRace all) {
  const std::int64_t row = blockIdx.x;
  const float* probabilities = all.probabilities + row * all.vocabulary_size;
  const std::int64_t seed = all.seeds[row];
  const std::int64_t step = all.steps[row];
  const std::int64_t chunks = (all.vocabulary_size + kRaceChunk - 1) / kRaceChunk;
  std::uint64_t best = race_key(0, 0);
  for (std::int64_t counter = threadIdx.x; counter < chunks * kRaceLanes; counter += kThreads) {
    const std::int64_t chunk = counter / kRaceLanes;
    const std::int64_t lane = counter % kRaceLanes;
    const PhiloxWords random = race_words(chunk, lane, seed, step);
    for (int word = 0; word < 4; ++word) {
      const std::int64_t token = chunk * kRaceChunk + word * kRaceLanes + lane;
      if (token < all.vocabulary_size) {
        const std::int32_t score = bits_of(__fdiv_rn(probabilities[token], exponential_float(random.word[word])));
        const std::uint64_t key = race_key(score < 0 ? 0 : score, token);
        best = key > best ? key : best;
      }
    }
  }
  __shared__ std::uint64_t of_warp[kThreads / kWarp];
  best = larger_in_warp(best);
  if (threadIdx.x % kWarp == 0) {
    of_warp[threadIdx.x / kWarp] = best;
  }
  __syncthreads();
  if (threadIdx.x < kWarp) {
    best = larger_in_warp(of_warp[threadIdx.x]);
    if (threadIdx.x == 0) {
      all.tokens[row] = race_winner(best);
      all.steps[row] = step + 1;
    }
  }
}

}  // namespace

void launch_philox_race(const PhiloxRace& all, CUstream_st* cuda_stream) {
  if (all.rows > 0) {
    launch_kernel(race, static_cast<unsigned>(all.rows), kThreads, 0, cuda_stream, all);
  }
}

}  // namespace decodelab
