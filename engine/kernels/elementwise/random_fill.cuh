// Host side of the kernel that fills device memory with the generator of synthetic weights.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace decodelab {

/// Writes elements 0 .. count - 1 of the stream `stream_number` under `seed` to `out` (fp32, device memory): the bits
/// of fill_uniform(). Asynchronous on `cuda_stream`; the caller checks for launch errors.
void launch_random_fill(float* out, std::int64_t count, std::uint64_t seed, std::uint64_t stream_number, float mean,
                        float half_width, CUstream_st* cuda_stream);

}  // namespace decodelab
