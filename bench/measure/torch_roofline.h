// Rooflines: the fastest that the machine reads memory and multiplies matrices, timed as arms in the same blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/measure/worker.h"
#include "engine/checkpoint/model_config.h"

namespace decodelab {

/// Bytes of the buffer that is read over and over: above any cache.
inline constexpr std::int64_t kRooflineBufferBytes = std::int64_t{1} << 30;

/// Returns the nanoseconds that all threads of libtorch take to read `bytes` of a buffer of kRooflineBufferBytes on
/// huge pages, each value once; each call starts where the last one ended. CPU only.
std::int64_t read_memory_ns(std::int64_t bytes);

/// Returns the nanoseconds that `flops` floating-point operations take at the speed of one large matrix product in
/// `dtype` (fp32, fp16, bf16) on `device`, with its matrices in the caches. The first call chooses the faster of
/// libtorch's and oneDNN's product.
std::int64_t multiply_ns(std::int64_t flops, const std::string& dtype, const std::string& device);

/// Makes the arm `roofline-read` or `roofline-gemm`: a step reads the bytes that a step of the cell must read, or takes
/// as long as its floating-point operations do at the speed of a large product. Throws std::invalid_argument for
/// another label.
std::unique_ptr<Worker> make_roofline_worker(const std::string& label, const ModelConfig& config);

}  // namespace decodelab
