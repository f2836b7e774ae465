// Philox4x32-10 on the device: a thread computes the four values of one counter.
#include "engine/kernels/elementwise/random_fill.cuh"
#include "engine/kernels/launch.cuh"
#include "engine/kernels/philox.h"

namespace decodelab {
namespace {

constexpr int kThreads = 256;
/// Maximum number of blocks of a launch: more would only queue up. Threads stride over the rest.
constexpr std::int64_t kMostBlocks = 16384;

__global__ void fill(float* out, std::int64_t count, std::uint64_t seed, std::uint64_t stream_number, float mean,
                     float half_width) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; block * 4 < count;
       block += step) {
    const PhiloxWords random = philox4x32(philox_counter(static_cast<std::uint64_t>(block), stream_number), seed);
    for (int word = 0; word < 4 && block * 4 + word < count; ++word) {
      out[block * 4 + word] = uniform_float(random.word[word], mean, half_width);
    }
  }
}

}  // namespace

void launch_random_fill(float* out, std::int64_t count, std::uint64_t seed, std::uint64_t stream_number, float mean,
                        float half_width, CUstream_st* cuda_stream) {
  const std::int64_t needed = (count + 4 * kThreads - 1) / (4 * kThreads);
  const auto blocks = static_cast<unsigned>(needed < kMostBlocks ? needed : kMostBlocks);
  if (blocks > 0) {
    launch_kernel(fill, blocks, kThreads, 0, cuda_stream, out, count, seed, stream_number, mean, half_width);
  }
}

}  // namespace decodelab
