// Products by coded weights in plain C++, for processors without a kernel of their own, and as the reference of tests.
#include <cmath>
#include <cstring>

#include "engine/kernels/half.h"
#include "engine/kernels/products/coded/coded_kernels.h"

namespace decodelab::codes {
namespace {

float half_at(const std::byte* from, std::int64_t index) {
  std::uint16_t half;
  std::memcpy(&half, from + 2 * index, sizeof half);
  return from_half(half);
}

/// Returns the code of an output of a tile and an input of its group.
template <WeightCode code>
std::int32_t code_at(const std::byte* codes, std::int64_t output, std::int64_t input) {
  if constexpr (code == WeightCode::q8) {
    return std::to_integer<std::int32_t>(codes[input / 4 * 64 + output * 4 + input % 4]);
  } else {
    const auto both = std::to_integer<std::int32_t>(codes[input / 8 * 64 + output * 4 + input % 4]);
    return input % 8 < 4 ? both & 15 : both >> 4;
  }
}

template <WeightCode code>
void multiply_portable(const std::byte* panel, const CodedRows& x, std::int64_t first, std::int64_t count, float* sums,
                       std::int64_t stride) {
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int8_t* const inputs = x.codes(first + row);
    for (std::int64_t output = 0; output < kCodedOutputs; ++output) {
      float total = 0;
      for (std::int64_t group = 0; group < x.groups(); ++group) {
        const std::byte* const tile = panel + group * CodedMatrix::tile_bytes(code);
        const std::int32_t sum = x.sums(first + row)[group];
        const float scale = x.scales(first + row)[group];
        std::int32_t product = -zero_of(code) * sum;
        for (std::int64_t input = 0; input < kCodedGroup; ++input) {
          product += code_at<code>(tile + CodedMatrix::header_bytes(code), output, input) *
                     static_cast<std::int32_t>(inputs[group * kCodedGroup + input]);
        }
        total = std::fma(static_cast<float>(product), half_at(tile, output) * scale, total);
        if constexpr (code == WeightCode::q4_least) {
          total = std::fma(half_at(tile + 2 * kCodedOutputs, output), scale * static_cast<float>(sum), total);
        }
      }
      sums[row * stride + output] = total;
    }
  }
}

}  // namespace

MultiplyPanel portable_kernel(WeightCode code) {
  return for_code(code, multiply_portable<WeightCode::q8>, multiply_portable<WeightCode::q4>,
                  multiply_portable<WeightCode::q4_least>);
}

}  // namespace decodelab::codes
