// The epilogue of a product: bias, activation, rounding.
#pragma once

#include "engine/kernels/elementwise/gelu.h"
#include "engine/kernels/products/packed_matrix.h"

namespace decodelab::skinny {

/// Writes outputs [output, output + 16) of a row from their sums, as many of them as exist.
template <typename Element>
[[gnu::always_inline]] inline void finish_sums(const SkinnyProduct& product, const float* sums, std::int64_t row,
                                               std::int64_t output) {
  const std::int64_t left = product.weights.outputs() - output;
  if (left <= 0) {
    return;
  }
  simd::Floats value = simd::load(sums);
  if (product.bias != nullptr) {
    value += simd::load_up_to(static_cast<const Element*>(product.bias) + output, left);
  }
  if (product.activation) {
    value = simd::activate(value, *product.activation);
  }
  simd::store_up_to(static_cast<Element*>(product.y) + row * product.y_stride + output, value, left);
}

}  // namespace decodelab::skinny
