// Host side of the kernel that draws tokens by the exponential race of Philox.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace decodelab {

/// Holds what the kernel reads and writes, all in device memory. S rows, V tokens.
struct PhiloxRace {
  const float* probabilities;  ///< [S, V]
  std::int64_t rows;
  std::int64_t vocabulary_size;
  const std::int64_t* seeds;  ///< [S]
  std::int64_t* steps;        ///< [S]; the kernel adds 1 to each.
  std::int64_t* tokens;       ///< [S]
};

/// Finds the tokens that race_on_cpu() finds. Asynchronous on `cuda_stream`. The launch depends on no host data, so
/// that it can be captured; the caller checks for launch errors.
void launch_philox_race(const PhiloxRace& race, CUstream_st* cuda_stream);

}  // namespace decodelab
