// Where the sums of a product go, and what is done with them first.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/kernels/activation.h"
#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/element_type.h"

namespace decodelab {

/// Describes y, [rows, results()], of a product with weights [N, K].
struct ProductOutput {
  std::int64_t outputs;  ///< N
  bool gated;            ///< The first half of the sums goes through the activation and is multiplied by the second.
  ElementType dtype;     ///< Of the bias and y: fp32 or bf16.
  const void* bias;      ///< [N], or null.
  void* y;
  std::int64_t y_stride;  ///< Elements from one row to the next.
  /// Applied to the sums in fp32, before they are rounded.
  std::optional<Activation> activation = {};

  std::int64_t results() const { return gated ? outputs / 2 : outputs; }
};

/// Writes what follows from sums in fp32, [rows][width], of outputs [first, first + width) as they are packed: of a
/// gated product 16 of either half in turn. `first` and `width` are multiples of 16, of a gated product of 32. Outputs
/// past the last one are left out.
void finish_sums(const ProductOutput& output, const float* sums, std::int64_t rows, std::int64_t first,
                 std::int64_t width, CpuIsa isa);

}  // namespace decodelab
