// Skinny products in plain C++, for processors without a kernel of their own, and as the reference of tests.
#include <bit>
#include <cstring>

#include "engine/kernels/products/skinny_kernels.h"

namespace decodelab::skinny {
namespace {

constexpr std::int64_t kStepBytes = 4;

std::uint32_t word(const std::byte* bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

float first_of(std::uint32_t pair) { return std::bit_cast<float>(pair << 16); }
float second_of(std::uint32_t pair) { return std::bit_cast<float>(pair & 0xffff0000U); }

template <typename Multiply>
void add(const std::byte* panel, const std::byte* x, std::int64_t stride, std::int64_t rows, std::int64_t depth,
         float* sums, Multiply&& multiply) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t step = 0; step < depth; ++step) {
      const std::uint32_t input = word(x + row * stride + step * kStepBytes);
      for (std::int64_t output = 0; output < kPanelOutputs; ++output) {
        sums[row * kPanelOutputs + output] +=
            multiply(word(panel + (step * kPanelOutputs + output) * kStepBytes), input);
      }
    }
  }
}

void add_fp32(const std::byte* panel, const std::byte* x, std::int64_t stride, std::int64_t rows, std::int64_t depth,
              float* sums) {
  add(panel, x, stride, rows, depth, sums,
      [](std::uint32_t w, std::uint32_t v) { return std::bit_cast<float>(w) * std::bit_cast<float>(v); });
}

void add_bf16(const std::byte* panel, const std::byte* x, std::int64_t stride, std::int64_t rows, std::int64_t depth,
              float* sums) {
  add(panel, x, stride, rows, depth, sums,
      [](std::uint32_t w, std::uint32_t v) { return first_of(w) * first_of(v) + second_of(w) * second_of(v); });
}

}  // namespace

AddPanel portable_kernel(ElementType dtype) { return dtype == ElementType::bfloat16 ? add_bf16 : add_fp32; }

}  // namespace decodelab::skinny
