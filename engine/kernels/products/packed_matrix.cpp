// Packs weights, and walks through panels so that a block of weights is multiplied by all rows while it is in the
// cache.
#include "engine/kernels/products/packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/kernels/products/skinny_kernels.h"

namespace decodelab {
namespace {

/// Bytes of a panel that are multiplied by all rows before the next ones are: a fraction of any first-level cache.
/// While one block is multiplied, the next is prefetched, more evenly with shorter blocks; but sums are loaded and
/// stored at the ends of each block. On an AMD Zen 5 up to eight rows took 0.94 of the time at 8 kB, twelve 1.1.
constexpr std::int64_t block_bytes(std::int64_t rows) { return (rows <= 8 ? 8 : 16) << 10; }

std::int64_t filled_inputs(std::int64_t inputs, ElementType dtype, WeightOrder order) {
  if (order == WeightOrder::tiles) {
    return rounded_up(inputs, kTileInputs);
  }
  return dtype == ElementType::bfloat16 ? rounded_up(inputs, 2) : inputs;
}

/// Where the weights of an output and input of a panel stand, counted in elements: `group` inputs stand together.
template <std::int64_t group>
struct InPanels {
  std::int64_t operator()(std::int64_t output, std::int64_t input) const {
    return (input / group * kPanelOutputs + output) * group + input % group;
  }
};
struct InTiles {
  std::int64_t steps;

  std::int64_t operator()(std::int64_t output, std::int64_t input) const {
    const std::int64_t step = output / (2 * kTileOutputs) * steps + input / kTileInputs;
    const std::int64_t tile = step * 2 + output / kTileOutputs % 2;
    const std::int64_t pair = tile * (kTileInputs / 2) + input % kTileInputs / 2;
    return (pair * kTileOutputs + output % kTileOutputs) * 2 + input % 2;
  }
};

/// Returns the row of W that a packed row holds, or -1 for one of zeros.
std::int64_t source_row(const PackedMatrix& matrix, std::int64_t packed_row) {
  if (!matrix.gated()) {
    return packed_row < matrix.outputs() ? packed_row : -1;
  }
  const std::int64_t result = packed_row / (2 * kTileOutputs) * kTileOutputs + packed_row % kTileOutputs;
  const bool gate = packed_row / kTileOutputs % 2 == 0;
  return result >= matrix.results() ? -1 : gate ? result : matrix.results() + result;
}

template <typename Element, typename Place>
void pack(const PackedMatrix& matrix, const void* weights, std::int64_t panel, const Place& place, std::byte* packed) {
  const std::int64_t inputs = matrix.inputs();
  const auto* from = static_cast<const Element*>(weights);
  auto* to = reinterpret_cast<Element*>(packed);
  // Packs blocks of inputs, so that the written lines stay in the cache until every output has written its part of
  // them.
  constexpr std::int64_t kInputs = 128;
  for (std::int64_t begin = 0; begin < inputs; begin += kInputs) {
    const std::int64_t end = std::min(inputs, begin + kInputs);
    for (std::int64_t output = 0; output < kPanelOutputs; ++output) {
      const std::int64_t row = source_row(matrix, panel * kPanelOutputs + output);
      for (std::int64_t input = begin; row >= 0 && input < end; ++input) {
        to[place(output, input)] = from[row * inputs + input];
      }
    }
  }
}

skinny::AddPanel kernel_of(CpuIsa isa, ElementType dtype) {
  switch (isa) {
    case CpuIsa::portable: return skinny::portable_kernel(dtype);
    case CpuIsa::avx2: return skinny::avx2_kernel(dtype);
    case CpuIsa::avx512: return skinny::avx512_kernel(dtype);
    case CpuIsa::avx512_bf16:
    case CpuIsa::amx_bf16:  // its own weights lie in tiles
      return dtype == ElementType::bfloat16 ? skinny::avx512_bf16_kernel() : skinny::avx512_kernel(dtype);
  }
  return skinny::portable_kernel(dtype);
}

/// Copies the rows with a zero after their last input: the last input of an odd number has no partner otherwise.
std::vector<std::uint16_t> filled_rows(const SkinnyProduct& product) {
  const std::int64_t filled = product.weights.inputs() + 1;
  std::vector<std::uint16_t> rows(static_cast<std::size_t>(product.rows * filled));
  for (std::int64_t row = 0; row < product.rows; ++row) {
    std::memcpy(rows.data() + row * filled, static_cast<const std::uint16_t*>(product.x) + row * product.x_stride,
                static_cast<std::size_t>(product.weights.inputs()) * sizeof(std::uint16_t));
  }
  return rows;
}

}  // namespace

PackedMatrix::PackedMatrix(std::int64_t outputs, std::int64_t inputs, ElementType dtype, WeightOrder order, bool gated)
    : outputs_(outputs), inputs_(inputs), dtype_(dtype), order_(order), gated_(gated) {
  if (gated && outputs % 2 != 0) {
    throw std::invalid_argument("a gated matrix has as many rows of a gate as of what it multiplies");
  }
  if (dtype != ElementType::float32 && dtype != ElementType::bfloat16) {
    throw std::invalid_argument("a packed matrix holds fp32 or bf16");
  }
  if (order == WeightOrder::tiles && dtype != ElementType::bfloat16) {
    throw std::invalid_argument("a packed matrix in tiles holds bf16");
  }
  data_.emplace(static_cast<std::size_t>(bytes()));
}

void PackedMatrix::fill(const void* weights, std::int64_t first, std::int64_t last) {
  for (std::int64_t panel = first; panel < last; ++panel) {
    std::byte* to = data_->data() + panel * panel_bytes();
    if (order_ == WeightOrder::tiles) {
      pack<std::uint16_t>(*this, weights, panel, InTiles{divided_up(inputs_, kTileInputs)}, to);
    } else if (dtype_ == ElementType::bfloat16) {
      pack<std::uint16_t>(*this, weights, panel, InPanels<2>{}, to);
    } else {
      pack<float>(*this, weights, panel, InPanels<1>{}, to);
    }
  }
}

std::int64_t PackedMatrix::panel_bytes() const {
  return kPanelOutputs * filled_inputs(inputs_, dtype_, order_) * static_cast<std::int64_t>(element_bytes(dtype_));
}

std::span<std::byte> PackedMatrix::room_of_panel(std::int64_t index) {
  return {data_->data() + index * panel_bytes(), static_cast<std::size_t>(panel_bytes())};
}

std::string PackedMatrix::layout() const {
  return std::string(order_ == WeightOrder::tiles ? "tiles" : "panels") + " v" + std::to_string(kPackingVersion) +
         (gated_ ? " gated" : "") + (dtype_ == ElementType::bfloat16 ? " bf16 [" : " fp32 [") +
         std::to_string(outputs_) + ", " + std::to_string(inputs_) + "]";
}

void multiply_panels(const SkinnyProduct& product, std::int64_t first, std::int64_t last, CpuIsa isa) {
  const PackedMatrix& weights = product.weights;
  if (weights.order() != weight_order(isa)) {
    throw std::invalid_argument(std::string("weights in another order than that of ") + to_string(isa));
  }
  if (weights.gated() && !product.activation) {
    throw std::invalid_argument("a product by a gated matrix needs the gate's activation");
  }
  const bool bf16 = weights.dtype() == ElementType::bfloat16;
  if (weights.order() == WeightOrder::tiles) {
    (product.rows <= kFewRows ? skinny::multiply_on_tiles : skinny::multiply_many_on_tiles)(product, first, last);
    return;
  }
  const std::int64_t depth = bf16 ? (weights.inputs() + 1) / 2 : weights.inputs();
  const std::int64_t step_bytes = 4;  // one input in fp32, two in bf16
  const std::int64_t block = block_bytes(product.rows) / (kPanelOutputs * step_bytes);
  const auto* x = static_cast<const std::byte*>(product.x);
  std::int64_t stride = product.x_stride * static_cast<std::int64_t>(element_bytes(weights.dtype()));
  std::vector<std::uint16_t> filled;
  if (bf16 && weights.inputs() % 2 != 0) {
    filled = filled_rows(product);
    x = reinterpret_cast<const std::byte*>(filled.data());
    stride = (weights.inputs() + 1) * static_cast<std::int64_t>(sizeof(std::uint16_t));
  }
  const skinny::AddPanel add = kernel_of(isa, weights.dtype());
  std::vector<float> sums(static_cast<std::size_t>(product.rows * kPanelOutputs));
  for (std::int64_t panel = first; panel < last; ++panel) {
    std::ranges::fill(sums, 0.0f);
    for (std::int64_t begin = 0; begin < depth; begin += block) {
      add(weights.panel(panel) + begin * kPanelOutputs * step_bytes, x + begin * step_bytes, stride, product.rows,
          std::min(block, depth - begin), sums.data());
    }
    finish_sums(product.output(), sums.data(), product.rows, panel * kPanelOutputs, kPanelOutputs, isa);
  }
}

}  // namespace decodelab
