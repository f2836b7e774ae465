// The tensors that pass between the parts of a layer in one step.
#pragma once

#include "engine/layers/workspace.h"
#include "engine/tensor.h"

namespace decodelab {

class EncodedPrompts;
class StepRows;
struct KvPages;

/// Where a layer may write the keys and values of a step itself: all rows and slots of its cache, [B, slots, G * k]
/// each, as views. The slot of a token is its position.
struct KvRoom {
  at::Tensor keys;
  at::Tensor values;
};

/// What the parts of one step share.
struct ForwardStep {
  const StepRows& rows;  ///< Lengths and position ids.
  Workspace& workspace;
  const EncodedPrompts* encoded = nullptr;  ///< What a decoder with an encoder attends to; else null.
  const KvRoom* room = nullptr;             ///< Of the layer that runs; null where it returns its keys and values.
};

/// Holds the outputs of a layer's projections: queries [B, T, H * k], and new keys and values [B, T, 2 * G * k], keys
/// first; undefined where the layer wrote them into its room.
struct Projected {
  at::Tensor query;
  at::Tensor key_value;
};

/// Holds what a cache returns to attention for one layer: keys and values, [B, L, G * k] each, which may be views with
/// any strides; or the pages that hold them, beside undefined tensors, where attention reads pages.
struct KeysValues {
  at::Tensor keys;
  at::Tensor values;
  const KvPages* pages = nullptr;
};

/// Holds the sum of the layers so far in two parts: the output of the last part (`addend`) is added where the next norm
/// needs the sum, so that one slot may compute sum and norm together. Each is [B, T, d]; `addend` is undefined where
/// nothing is to be added.
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
