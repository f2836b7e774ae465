// Host side of the kernel that draws tokens by the exponential race of Philox.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace decodelab {

/// What the kernel reads and writes, all in device memory. S rows, V tokens.
struct PhiloxRace {
  const float* probabilities;  ///< [S, V]
  std::int64_t rows;
  std::int64_t vocabulary_size;
  const std::int64_t* seeds;  ///< [S]
  std::int64_t* steps;        ///< [S]; each goes on by one.
  std::int64_t* tokens;       ///< [S]
};

/// The tokens that race_on_cpu() finds. Asynchronous on `cuda_stream`, and nothing of it depends on the host, so that
/// it can be captured; errors stay with the launch and are the caller's to check.
void launch_philox_race(const PhiloxRace& race, CUstream_st* cuda_stream);

}  // namespace decodelab
