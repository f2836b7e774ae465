// Rounds activations to 8 bits.
#include "engine/kernels/products/coded/coded_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <stdexcept>

#include "engine/kernels/integer_isa.h"

namespace decodelab {
namespace {

using Group = std::array<float, kCodedGroup>;

/// Groups below it are zeros: 127 over it would be no number.
constexpr float kLeastMagnitude = 1e-30F;
/// Added to a number far below it, it rounds that number to the nearest integer, half to even.
constexpr float kRounder = 0x1.8p23F;

float value_at(const float* x, std::int64_t index) { return x[index]; }
float value_at(const std::uint16_t* x, std::int64_t index) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x[index]) << 16);
}

/// Codes one group, and returns its scale and the sum of its codes. Only integers are compared and summed, so that the
/// compiler may take several at a time.
struct Coded {
  float scale;
  std::int32_t sum;
  std::int32_t first_sum;  ///< Of the first half.
};
[[gnu::always_inline]] inline std::int32_t largest_bits_of(const Group& group) {
  std::int32_t largest_bits = 0;
  for (const float value : group) {
    largest_bits = std::max(largest_bits, std::bit_cast<std::int32_t>(value) & 0x7fffffff);
  }
  return largest_bits;
}
/// `largest_bits` are those of the largest magnitude of all that share the scale.
[[gnu::always_inline]] inline Coded code_group(const Group& group, std::int32_t largest_bits, std::int8_t* codes) {
  constexpr std::int32_t kInfinity = 0x7f800000;
  if (largest_bits >= kInfinity) {  // The scale says so, and all that is made of the group.
    std::fill_n(codes, group.size(), std::int8_t{0});
    return {.scale = std::numeric_limits<float>::quiet_NaN(), .sum = 0, .first_sum = 0};
  }
  const auto largest = std::bit_cast<float>(largest_bits);
  const float inverse = largest > kLeastMagnitude ? 127 / largest : 0;
  std::array<std::int32_t, 2> sums{};
  for (std::size_t half = 0; half < sums.size(); ++half) {
    for (std::size_t index = half * group.size() / 2; index < (half + 1) * group.size() / 2; ++index) {
      const std::int32_t code =
          std::bit_cast<std::int32_t>(group[index] * inverse + kRounder) - std::bit_cast<std::int32_t>(kRounder);
      codes[index] = static_cast<std::int8_t>(code);
      sums[half] += code;
    }
  }
  return {.scale = largest / 127, .sum = sums[0] + sums[1], .first_sum = sums[0]};
}

/// Where the groups of rows lie, and where their codes go.
template <typename Element>
struct Task {
  const Element* x;
  std::int64_t stride;
  std::int64_t inputs;
  std::int64_t groups;
  bool one_scale;
  std::int8_t* codes;
  float* scales;
  std::int32_t* sums;
  std::int32_t* first_sums;
};

template <typename Element>
[[gnu::always_inline]] inline Group group_at(const Task<Element>& task, std::int64_t place) {
  const std::int64_t begin = place % task.groups * kCodedGroup;
  const Element* const from = task.x + place / task.groups * task.stride + begin;
  Group group{};
  if (task.inputs - begin >= kCodedGroup) {
    for (std::int64_t index = 0; index < kCodedGroup; ++index) {
      group[static_cast<std::size_t>(index)] = value_at(from, index);
    }
  } else {
    for (std::int64_t index = 0; index < task.inputs - begin; ++index) {
      group[static_cast<std::size_t>(index)] = value_at(from, index);
    }
  }
  return group;
}

/// Codes rows of one scale each.
template <typename Element>
[[gnu::always_inline]] inline void code_rows(const Task<Element>& task, std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t begin = row * task.groups;
    std::int32_t largest_bits = 0;
    for (std::int64_t place = begin; place < begin + task.groups; ++place) {
      largest_bits = std::max(largest_bits, largest_bits_of(group_at(task, place)));
    }
    std::int32_t sum = 0;
    for (std::int64_t place = begin; place < begin + task.groups; ++place) {
      const Coded coded = code_group(group_at(task, place), largest_bits, task.codes + place * kCodedGroup);
      task.scales[begin] = coded.scale;
      sum += coded.sum;
    }
    task.sums[begin] = sum;
  }
}

template <typename Element>
[[gnu::always_inline]] inline void code_groups(const Task<Element>& task, std::int64_t first, std::int64_t last) {
  if (task.one_scale) {
    return code_rows(task, first, last);
  }
  for (std::int64_t place = first * task.groups; place < last * task.groups; ++place) {
    const Group group = group_at(task, place);
    const Coded coded = code_group(group, largest_bits_of(group), task.codes + place * kCodedGroup);
    task.scales[place] = coded.scale;
    task.sums[place] = coded.sum;
    task.first_sums[place] = coded.first_sum;
  }
}

#if defined(__x86_64__)
/// Without fused multiply-adds, which would round once where others round twice.
template <typename Element>
[[gnu::target("avx2")]] void code_groups_avx2(const Task<Element>& task, std::int64_t first, std::int64_t last) {
  code_groups(task, first, last);
}
#endif

template <typename Element>
void code_groups_here(const Task<Element>& task, std::int64_t first, std::int64_t last) {
#if defined(__x86_64__)
  if (best_integer_isa() != IntegerIsa::portable) {
    code_groups_avx2(task, first, last);
    return;
  }
#endif
  code_groups(task, first, last);
}

}  // namespace

CodedRows::CodedRows(std::int64_t rows, std::int64_t inputs, std::span<std::byte> memory, bool one_scale)
    : rows_(rows),
      inputs_(inputs),
      groups_(divided_up(inputs, kCodedGroup)),
      one_scale_(one_scale),
      scales_(reinterpret_cast<float*>(memory.data())),
      sums_(reinterpret_cast<std::int32_t*>(scales_ + rows * groups_)),
      first_sums_(sums_ + rows * groups_),
      codes_(reinterpret_cast<std::int8_t*>(first_sums_ + rows * groups_)) {
  if (std::ssize(memory) < bytes(rows, inputs) || reinterpret_cast<std::uintptr_t>(memory.data()) % 4 != 0) {
    throw std::invalid_argument("coded activations need more memory, or memory that is aligned to 4 bytes");
  }
}

void CodedRows::fill(const void* x, ElementType dtype, std::int64_t stride, std::int64_t first,
                     std::int64_t last) const {
  const auto code = [&](const auto* elements) {
    code_groups_here(Task<std::remove_cvref_t<decltype(*elements)>>{.x = elements,
                                                                    .stride = stride,
                                                                    .inputs = inputs_,
                                                                    .groups = groups_,
                                                                    .one_scale = one_scale_,
                                                                    .codes = codes_,
                                                                    .scales = scales_,
                                                                    .sums = sums_,
                                                                    .first_sums = first_sums_},
                     first, last);
  };
  switch (dtype) {
    case ElementType::float32: code(static_cast<const float*>(x)); return;
    case ElementType::bfloat16: code(static_cast<const std::uint16_t*>(x)); return;
    case ElementType::float16: throw std::invalid_argument("activations are coded from fp32 or bf16, not from fp16");
  }
}

}  // namespace decodelab
