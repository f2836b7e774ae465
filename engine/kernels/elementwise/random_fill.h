// Uniform random tensors that are the same on every device, thread count and build.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace at {
class Tensor;
}

namespace decodelab {

/// Returns uniform numbers in [-1, 1), fp32, contiguous, on `device`: those of fill_uniform() with mean 0 and half
/// width 1. On CUDA a kernel computes them on the device; the bits are the same.
at::Tensor random_uniform(const std::vector<std::int64_t>& shape, std::uint64_t seed, std::uint64_t stream_number,
                          const std::string& device);

}  // namespace decodelab
