// The element types that kernels and checkpoints know.
#pragma once

#include <cstddef>
#include <cstdint>

namespace decodelab {

/// The element types of weights, activations and keys.
enum class ElementType { float32, float16, bfloat16 };

/// Returns the bytes of one element.
constexpr std::size_t element_bytes(ElementType type) { return type == ElementType::float32 ? 4 : 2; }

}  // namespace decodelab
