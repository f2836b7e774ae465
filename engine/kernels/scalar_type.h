// The element types of a checkpoint as libtorch knows them.
#pragma once

#include "engine/kernels/element_type.h"
#include "engine/tensor.h"

namespace decodelab {

/// Returns libtorch's element type for ours.
inline at::ScalarType scalar_type(ElementType type) {
  switch (type) {
    case ElementType::float32: return at::kFloat;
    case ElementType::float16: return at::kHalf;
    case ElementType::bfloat16: break;
  }
  return at::kBFloat16;
}

/// Returns our element type for libtorch's, which must be one of the three.
inline ElementType element_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return ElementType::float32;
    case at::kHalf: return ElementType::float16;
    default: return ElementType::bfloat16;
  }
}

}  // namespace decodelab
