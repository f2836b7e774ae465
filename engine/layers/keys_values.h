// What a cache hands to attention for one layer.
#pragma once

#include "engine/tensor.h"

namespace decodelab {

/// Keys and values of one layer, [B, L, kv_heads * head_dim] each; they may be views with any strides.
struct KeysValues {
  at::Tensor keys;
  at::Tensor values;
};

}  // namespace decodelab
