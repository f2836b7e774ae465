// Turns fp32 values into the element types of a checkpoint.
#pragma once

#include <cstddef>
#include <span>

#include "engine/checkpoint/safetensors.h"

namespace decodelab {

/// Writes `values` to `out` as elements of `type`, rounded to the nearest and ties to even (IEEE 754), little-endian;
/// `out` needs no alignment.
///
/// Values that are too large become infinity, values that are too small a denormal number or a zero of their sign; a
/// NaN becomes a quiet NaN of its sign. Throws std::invalid_argument when `out` has not exactly element_bytes(type) for
/// each value.
void convert_elements(std::span<const float> values, ElementType type, std::span<std::byte> out);

}  // namespace decodelab
