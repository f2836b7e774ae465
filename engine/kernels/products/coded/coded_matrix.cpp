// Packs coded weights, and walks through panels.
#include "engine/kernels/products/coded/coded_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "engine/kernels/products/coded/coded_kernels.h"

namespace decodelab {
namespace {

/// Where the code of an output of a tile and an input of its group stands, and in which half of the byte.
struct CodePlace {
  std::int64_t byte;
  bool upper;
};

CodePlace place_of(WeightCode code, std::int64_t output, std::int64_t input) {
  if (code == WeightCode::q8) {
    return {.byte = input / 4 * 64 + output * 4 + input % 4, .upper = false};
  }
  return {.byte = input / 8 * 64 + output * 4 + input % 4, .upper = input % 8 >= 4};
}

void put(std::byte* tile, WeightCode code, std::int64_t output, const CodedGroup& group) {
  std::memcpy(tile + output * 2, &group.scale, sizeof group.scale);
  if (code == WeightCode::q4_least) {
    std::memcpy(tile + 2 * kCodedOutputs + output * 2, &group.least, sizeof group.least);
  }
  std::byte* const codes = tile + CodedMatrix::header_bytes(code);
  for (std::int64_t input = 0; input < kCodedGroup; ++input) {
    const CodePlace place = place_of(code, output, input);
    const auto value = static_cast<std::byte>(group.codes[static_cast<std::size_t>(input)]);
    codes[place.byte] |= place.upper ? value << 4 : value;
  }
}

/// Returns the row of W that an output of a panel holds, or -1 for one of zeros.
std::int64_t row_of(const CodedMatrix& matrix, std::int64_t panel, std::int64_t output) {
  const std::int64_t result = panel / matrix.panels_together() * kCodedOutputs + output;
  if (result >= matrix.results()) {
    return -1;
  }
  return result + panel % matrix.panels_together() * matrix.results();
}

codes::MultiplyPanel kernel_of(IntegerIsa isa, WeightCode code) {
  switch (isa) {
    case IntegerIsa::portable: return codes::portable_kernel(code);
    case IntegerIsa::avx2: return codes::avx2_kernel(code);
    case IntegerIsa::avx512_vnni: return codes::avx512_vnni_kernel(code);
  }
  return codes::portable_kernel(code);
}

}  // namespace

CodedMatrix::CodedMatrix(std::int64_t outputs, std::int64_t inputs, WeightCode code, bool gated)
    : outputs_(outputs), inputs_(inputs), code_(code), gated_(gated) {
  if (gated && outputs % 2 != 0) {
    throw std::invalid_argument("a gated matrix has as many rows of a gate as of what it multiplies");
  }
  data_.resize(static_cast<std::size_t>(bytes()));
}

void CodedMatrix::fill(const GroupOf& group_of, std::int64_t first, std::int64_t last) {
  for (std::int64_t panel = first; panel < last; ++panel) {
    for (std::int64_t output = 0; output < kCodedOutputs; ++output) {
      const std::int64_t row = row_of(*this, panel, output);
      for (std::int64_t group = 0; row >= 0 && group < groups(); ++group) {
        put(data_.data() + panel * panel_bytes() + group * tile_bytes(code_), code_, output, group_of(row, group));
      }
    }
  }
}

void multiply_coded(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output, std::int64_t first,
                    std::int64_t last, IntegerIsa isa) {
  if (weights.gated() && !output.activation) {
    throw std::invalid_argument("a product by a gated matrix needs the gate's activation");
  }
  const codes::MultiplyPanel multiply = kernel_of(isa, weights.code());
  const std::int64_t together = weights.panels_together();
  const std::int64_t width = together * kCodedOutputs;
  std::array<float, 2 * kCodedOutputs * codes::kMostRows> sums{};
  for (std::int64_t panel = first; panel < last; panel += together) {
    for (std::int64_t row = 0; row < x.rows(); row += codes::kMostRows) {
      const std::int64_t rows = std::min(codes::kMostRows, x.rows() - row);
      for (std::int64_t part = 0; part < together; ++part) {
        multiply(weights.panel(panel + part), x, row, rows, sums.data() + part * kCodedOutputs, width);
      }
      ProductOutput of_rows = output;
      const auto size = static_cast<std::int64_t>(element_bytes(output.dtype));
      of_rows.y = static_cast<std::byte*>(output.y) + row * output.y_stride * size;
      finish_sums(of_rows, sums.data(), rows, panel * kCodedOutputs, width, best_cpu_isa());
    }
  }
}

}  // namespace decodelab
