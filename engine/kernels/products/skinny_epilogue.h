// The epilogue of a product: bias, activation, a gate's multiplication, rounding.
#pragma once

#include "engine/kernels/products/product_output.h"
#include "engine/kernels/wide.h"

namespace decodelab::skinny {

/// Writes outputs [output, output + 16) of a row from their sums, as many of them as exist.
template <typename Element, std::int64_t N>
[[gnu::always_inline]] inline void finish_plain_sums(const ProductOutput& product, const float* sums, std::int64_t row,
                                                     std::int64_t output) {
  const std::int64_t left = product.outputs - output;
  if (left <= 0) {
    return;
  }
  simd::Wide<N> value = simd::load_wide<N>(sums);
  if (product.bias != nullptr) {
    value += simd::load_wide<N>(static_cast<const Element*>(product.bias) + output, left);
  }
  if (product.activation) {
    value = simd::activate(value, *product.activation);
  }
  simd::store_wide(static_cast<Element*>(product.y) + row * product.y_stride + output, value, left);
}

/// Writes results [result, result + 16) of a row from the 16 sums of the gate and the 16 after them.
template <typename Element, std::int64_t N>
[[gnu::always_inline]] inline void finish_gated_sums(const ProductOutput& product, const float* sums, std::int64_t row,
                                                     std::int64_t result) {
  const std::int64_t results = product.results();
  const std::int64_t left = results - result;
  if (left <= 0) {
    return;
  }
  simd::Wide<N> gate = simd::load_wide<N>(sums);
  simd::Wide<N> value = simd::load_wide<N>(sums + simd::kLanes);
  if (product.bias != nullptr) {
    const auto* bias = static_cast<const Element*>(product.bias);
    gate += simd::load_wide<N>(bias + result, left);
    value += simd::load_wide<N>(bias + results + result, left);
  }
  value = value * simd::activate(gate, *product.activation);
  simd::store_wide(static_cast<Element*>(product.y) + row * product.y_stride + result, value, left);
}

/// Writes what follows from the sums of `count` packed outputs of a row, `output` being the first; both are multiples
/// of 16, of a gated product of 32.
template <typename Element, std::int64_t N = simd::kLanes>
[[gnu::always_inline]] inline void finish_row(const ProductOutput& product, const float* sums, std::int64_t row,
                                              std::int64_t output, std::int64_t count) {
  if (product.gated) {
    for (std::int64_t at = 0; at < count; at += 2 * simd::kLanes) {
      finish_gated_sums<Element, N>(product, sums + at, row, (output + at) / 2);
    }
    return;
  }
  for (std::int64_t at = 0; at < count; at += simd::kLanes) {
    finish_plain_sums<Element, N>(product, sums + at, row, output + at);
  }
}

}  // namespace decodelab::skinny
