// What flows from layer to layer.
#pragma once

#include "engine/layers/step_memory.h"
#include "engine/tensor.h"

namespace decodelab {

/// The sum of the layers so far, in two parts: what the last one put out is added where the next norm needs the sum, so that a slot may do
/// both at once. Each is [B, T, d]; `addend` is undefined where nothing is to be added.
struct ResidualStream {
  at::Tensor residual;
  at::Tensor addend;

  at::Tensor sum(StepMemory& memory) const {
    if (!addend.defined() || !memory.reuses()) {
      return addend.defined() ? residual + addend : residual;
    }
    at::Tensor result = memory.take(residual.sizes(), residual.options());
    return at::add_out(result, residual, addend);
  }
};

}  // namespace decodelab
