// The norms that kernels and model families know.
#pragma once

#include <cstdint>

namespace decodelab {

/// Says what a norm over d elements computes. Statistics are fp32.
enum class NormKind : std::uint8_t {
  layer,         ///< (x - mean) / deviation * weight + bias (Ba et al. 2016, arXiv:1607.06450).
  rms,           ///< x / root mean square, rounded, times weight (Zhang and Sennrich 2019, arXiv:1910.07467).
  rms_plus_one,  ///< x / root mean square * (1 + weight), rounded once (Gemma).
};

}  // namespace decodelab
