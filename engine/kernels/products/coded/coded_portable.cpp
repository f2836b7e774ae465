// Products by coded weights in plain C++, for processors without a kernel of their own, and as the reference of tests.
#include <array>
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

int byte_at(const std::byte* from, std::int64_t index) { return std::to_integer<int>(from[index]); }

/// Returns the code of an output of a group and one of its inputs.
template <WeightCode code>
std::int32_t code_at(const std::byte* codes, std::int64_t output, std::int64_t input) {
  if constexpr (has_eight_bits(code)) {
    return byte_at(codes, input / 4 * 64 + output * 4 + input % 4);
  }
  const int both = byte_at(codes, input / 8 * 64 + output * 4 + input % 4);
  const int lower = input % 8 < 4 ? both & 15 : both >> 4;
  if constexpr (code == WeightCode::q6_k) {
    const int upper = byte_at(codes, kFourBits + input / 16 * 64 + output * 4 + input % 4) >> (input % 16 / 4 * 2) & 3;
    return lower | upper << 4;
  }
  return lower;
}

/// The scales of both halves of a group, and its least weight; of one output.
struct Scales {
  std::array<float, 2> of_half;
  float least;
};

template <WeightCode code>
Scales scales_of(const GroupAt& at, std::int64_t output) {
  const float scale = half_at(at.span, output);
  Scales scales{.of_half = {scale, scale}, .least = 0};
  if constexpr (has_least(code)) {
    scales.least = half_at(at.span + 2 * kOutputs, output);
  }
  if constexpr (code == WeightCode::q4_k) {
    const int low = byte_at(at.span + kStepsOfQ4K + at.group * kOutputs, output);
    const int high = byte_at(at.span + kUpperStepsOfQ4K + at.group / 2 * kOutputs, output) >> (at.group % 2 * 4);
    scales.of_half.fill(scale * static_cast<float>((low & 15) | (high & 3) << 4));
    scales.least = -scales.least * static_cast<float>(low >> 4 | (high >> 2 & 3) << 4);
  }
  if constexpr (code == WeightCode::q6_k) {
    for (std::size_t half = 0; half < 2; ++half) {
      const std::byte step = at.codes[static_cast<std::int64_t>(half) * kOutputs - kStepsOfQ6K + output];
      scales.of_half[half] = scale * static_cast<float>(std::to_integer<std::int8_t>(step));
    }
  }
  return scales;
}

template <WeightCode code>
struct Portable {
  static void multiply(const std::byte* panel, const CodedRows& x, std::int64_t first, std::int64_t count, float* sums,
                       std::int64_t stride) {
    for (std::int64_t row = 0; row < count; ++row) {
      for (std::int64_t output = 0; output < kOutputs; ++output) {
        sums[row * stride + output] = one_sum(panel, x, first + row, output);
      }
    }
  }

  static float one_sum(const std::byte* panel, const CodedRows& x, std::int64_t row, std::int64_t output) {
    if constexpr (scales_rows(code)) {
      return sum_of_row(panel, x, row, output);
    }
    constexpr std::int64_t kParts = has_halves(code) ? 2 : 1;
    float total = 0;
    for (std::int64_t group = 0; group < x.groups(); ++group) {
      const GroupAt at = group_at<code>(panel, group);
      const std::int8_t* const inputs = x.codes(row) + group * kCodedGroup;
      const Scales scales = scales_of<code>(at, output);
      for (std::int64_t part = 0; part < kParts; ++part) {
        std::int32_t product = 0;
        for (std::int64_t input = part * kCodedGroup / kParts; input < (part + 1) * kCodedGroup / kParts; ++input) {
          product +=
              (code_at<code>(at.codes, output, input) - zero_of(code)) * static_cast<std::int32_t>(inputs[input]);
        }
        total = std::fma(static_cast<float>(product),
                         scales.of_half[static_cast<std::size_t>(part)] * x.scales(row)[group], total);
      }
      if constexpr (has_least(code)) {
        total = std::fma(scales.least, x.scales(row)[group] * static_cast<float>(x.sums(row)[group]), total);
      }
    }
    return total;
  }

  static float sum_of_row(const std::byte* panel, const CodedRows& x, std::int64_t row, std::int64_t output) {
    std::int32_t product = 0;
    for (std::int64_t group = 0; group < x.groups(); ++group) {
      const GroupAt at = group_at<code>(panel, group);
      for (std::int64_t input = 0; input < kCodedGroup; ++input) {
        product += (code_at<code>(at.codes, output, input) - zero_of(code)) *
                   static_cast<std::int32_t>(x.codes(row)[group * kCodedGroup + input]);
      }
    }
    return static_cast<float>(product) * (half_at(panel, output) * x.scales(row)[0]);
  }
};

}  // namespace

MultiplyPanel portable_kernel(WeightCode code) { return for_code<Portable>(code); }

}  // namespace decodelab::codes
