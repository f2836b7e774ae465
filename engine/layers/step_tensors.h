// What passes between the parts of a layer in one step.
#pragma once

#include "engine/layers/workspace.h"
#include "engine/tensor.h"

namespace decodelab {

/// What stands between a layer's projections and its attention: queries [B, T, H * k] and new keys and values [B, T, 2
/// * G * k], keys first.
struct Projected {
  at::Tensor query;
  at::Tensor key_value;
};

/// What a cache hands to attention for one layer: keys and values, [B, L, G * k] each. They may be views with any
/// strides.
struct KeysValues {
  at::Tensor keys;
  at::Tensor values;
};

/// The sum of the layers so far, in two parts: what the last one put out is added where the next norm needs the sum, so
/// that a slot may do both at once. Each is [B, T, d]; `addend` is undefined where nothing is to be added.
struct ResidualStream {
  at::Tensor residual;
  at::Tensor addend;

  at::Tensor sum(Workspace& workspace) const {
    if (!addend.defined() || !workspace.reuses()) {
      return addend.defined() ? residual + addend : residual;
    }
    at::Tensor result = workspace.allocate(residual.sizes(), residual.options());
    return at::add_out(result, residual, addend);
  }
};

}  // namespace decodelab
