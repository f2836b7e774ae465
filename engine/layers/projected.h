// What stands between a layer's projections and its attention.
#pragma once

#include "engine/tensor.h"

namespace decodelab {

/// Queries [B, T, H * k] and new keys and values [B, T, 2 * G * k], keys first.
struct Projected {
  at::Tensor query;
  at::Tensor key_value;
};

}  // namespace decodelab
