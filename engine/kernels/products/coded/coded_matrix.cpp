// Packs coded weights, and walks through panels.
#include "engine/kernels/products/coded/coded_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "engine/kernels/products/coded/coded_kernels.h"

namespace decodelab {
namespace {

/// Where the lower bits of a code stand among the codes of its group, and in which half of the byte.
struct CodePlace {
  std::int64_t byte;
  bool upper;
};

CodePlace place_of(WeightCode code, std::int64_t output, std::int64_t input) {
  if (codes::has_eight_bits(code)) {
    return {.byte = input / 4 * 64 + output * 4 + input % 4, .upper = false};
  }
  return {.byte = input / 8 * 64 + output * 4 + input % 4, .upper = input % 8 >= 4};
}

/// Where the upper two of six bits stand, and at which bit.
struct UpperPlace {
  std::int64_t byte;
  std::int64_t bit;
};

UpperPlace upper_place(std::int64_t output, std::int64_t input) {
  return {.byte = codes::kFourBits + input / 16 * 64 + output * 4 + input % 4, .bit = input % 16 / 4 * 2};
}

/// A group of an output in a span: what put() and taken() write and read.
struct Span {
  std::byte* scales;  ///< Where the span begins; of q8_row the panel.
  std::byte* bytes;
  WeightCode code;
  std::int64_t group;  ///< In its span.

  std::byte& at(std::int64_t place) const { return scales[place]; }
  std::byte& code_at(std::int64_t place) const { return bytes[codes::codes_begin(code, group) + place]; }
  std::byte& low_steps(std::int64_t output) const { return at(codes::kStepsOfQ4K + group * codes::kOutputs + output); }
  std::byte& high_steps(std::int64_t output) const {
    return at(codes::kUpperStepsOfQ4K + group / 2 * codes::kOutputs + output);
  }
  int high_shift() const { return group % 2 == 0 ? 0 : 4; }
  std::byte& step_of_half(std::int64_t half, std::int64_t output) const {
    return code_at(-codes::kStepsOfQ6K + half * codes::kOutputs + output);
  }
  bool has_least() const { return code == WeightCode::q4_least || code == WeightCode::q4_k; }
};

void put(const Span& span, std::int64_t output, const CodedGroup& group) {
  std::memcpy(&span.at(output * 2), &group.scale, sizeof group.scale);
  if (span.has_least()) {
    std::memcpy(&span.at(2 * codes::kOutputs + output * 2), &group.least, sizeof group.least);
  }
  if (span.code == WeightCode::q4_k) {
    const int scale = static_cast<std::uint8_t>(group.steps[0]);
    const int least = group.least_step;
    span.low_steps(output) = static_cast<std::byte>((scale & 15) | (least & 15) << 4);
    span.high_steps(output) |= static_cast<std::byte>((scale >> 4 | least >> 4 << 2) << span.high_shift());
  }
  for (std::size_t half = 0; span.code == WeightCode::q6_k && half < group.steps.size(); ++half) {
    span.step_of_half(static_cast<std::int64_t>(half), output) = static_cast<std::byte>(group.steps[half]);
  }
  for (std::int64_t input = 0; input < kCodedGroup; ++input) {
    const CodePlace place = place_of(span.code, output, input);
    const auto value = static_cast<std::byte>(group.codes[static_cast<std::size_t>(input)]);
    if (codes::has_eight_bits(span.code)) {
      span.code_at(place.byte) = value;
      continue;
    }
    const std::byte lower = value & std::byte{15};
    span.code_at(place.byte) |= place.upper ? lower << 4 : lower;
    if (span.code == WeightCode::q6_k) {
      const UpperPlace upper = upper_place(output, input);
      span.code_at(upper.byte) |= value >> 4 << upper.bit;
    }
  }
}

/// Does the opposite of put().
CodedGroup taken(const Span& span, std::int64_t output) {
  CodedGroup group;
  std::memcpy(&group.scale, &span.at(output * 2), sizeof group.scale);
  if (span.has_least()) {
    std::memcpy(&group.least, &span.at(2 * codes::kOutputs + output * 2), sizeof group.least);
  }
  if (span.code == WeightCode::q4_k) {
    const auto low = std::to_integer<int>(span.low_steps(output));
    const auto high = std::to_integer<int>(span.high_steps(output)) >> span.high_shift();
    group.steps.fill(static_cast<std::int8_t>((low & 15) | (high & 3) << 4));
    group.least_step = static_cast<std::uint8_t>(low >> 4 | (high >> 2 & 3) << 4);
  }
  for (std::size_t half = 0; span.code == WeightCode::q6_k && half < group.steps.size(); ++half) {
    group.steps[half] = std::to_integer<std::int8_t>(span.step_of_half(static_cast<std::int64_t>(half), output));
  }
  for (std::int64_t input = 0; input < kCodedGroup; ++input) {
    const CodePlace place = place_of(span.code, output, input);
    const auto both = std::to_integer<std::uint8_t>(span.code_at(place.byte));
    auto value = static_cast<std::uint8_t>(codes::has_eight_bits(span.code) ? both
                                           : place.upper                    ? both >> 4
                                                                            : both & 15);
    if (span.code == WeightCode::q6_k) {
      const UpperPlace upper = upper_place(output, input);
      value |= static_cast<std::uint8_t>((std::to_integer<int>(span.code_at(upper.byte)) >> upper.bit & 3) << 4);
    }
    group.codes[static_cast<std::size_t>(input)] = value;
  }
  return group;
}

/// Returns the span of a group in a panel.
Span span_of(std::byte* panel, WeightCode code, std::int64_t group) {
  const std::int64_t together = codes::groups_of_span(code);
  std::byte* const span = panel + codes::header_bytes(code) + group / together * codes::span_bytes(code);
  return {.scales = scales_rows(code) ? panel : span, .bytes = span, .code = code, .group = group % together};
}

/// Returns the row of W that an output of a panel holds, or -1 for one of zeros.
std::int64_t row_of(const CodedMatrix& matrix, std::int64_t panel, std::int64_t output) {
  const std::int64_t result = panel / matrix.panels_together() * codes::kOutputs + output;
  if (result >= matrix.results()) {
    return -1;
  }
  return result + panel % matrix.panels_together() * matrix.results();
}

codes::MultiplyPanel kernel_of(IntegerIsa isa, WeightCode code) {
  switch (isa) {
    case IntegerIsa::portable: return codes::portable_kernel(code);
    case IntegerIsa::avx2: return codes::avx2_kernel(code);
    case IntegerIsa::avx512_vnni:
    case IntegerIsa::amx_int8: return codes::avx512_vnni_kernel(code);
  }
  return codes::portable_kernel(code);
}

}  // namespace

CodedMatrix::CodedMatrix(std::int64_t outputs, std::int64_t inputs, WeightCode code, bool gated)
    : outputs_(outputs), inputs_(inputs), code_(code), gated_(gated) {
  if (gated && outputs % 2 != 0) {
    throw std::invalid_argument("a gated matrix has as many rows of a gate as of what it multiplies");
  }
  if (groups() % codes::groups_of_span(code) != 0 || (codes::groups_of_span(code) > 1 && inputs % kCodedGroup != 0)) {
    throw std::invalid_argument("codes whose groups share scales need a multiple of 256 inputs");
  }
  // Tiles take two groups of q8_row at once, of which the last may not exist.
  data_.emplace(static_cast<std::size_t>(bytes() + (scales_rows(code) ? codes::span_bytes(code) : 0)));
}

std::int64_t CodedMatrix::bytes_of(std::int64_t outputs, std::int64_t inputs, WeightCode code, bool gated) {
  const std::int64_t panels =
      gated ? 2 * divided_up(outputs / 2, codes::kOutputs) : divided_up(outputs, codes::kOutputs);
  return panels * panel_bytes_of(inputs, code);
}

std::span<std::byte> CodedMatrix::room_of_panel(std::int64_t index) {
  return {data_->data() + index * panel_bytes(), static_cast<std::size_t>(panel_bytes())};
}

std::string CodedMatrix::layout() const {
  return std::string(to_string(code_)) + " v" + std::to_string(kCodingVersion) + (gated_ ? " gated [" : " [") +
         std::to_string(outputs_) + ", " + std::to_string(inputs_) + "]";
}

void CodedMatrix::fill(const GroupOf& group_of, std::int64_t first, std::int64_t last) {
  for (std::int64_t panel = first; panel < last; ++panel) {
    for (std::int64_t output = 0; output < codes::kOutputs; ++output) {
      const std::int64_t row = row_of(*this, panel, output);
      for (std::int64_t group = 0; row >= 0 && group < groups(); ++group) {
        put(span_of(data_->data() + panel * panel_bytes(), code_, group), output, group_of(row, group));
      }
    }
  }
}

void CodedMatrix::decode(std::int64_t first, std::int64_t last, std::span<float> weights) const {
  for (std::int64_t panel = first; panel < last; ++panel) {
    for (std::int64_t output = 0; output < codes::kOutputs; ++output) {
      const std::int64_t row = row_of(*this, panel, output);
      for (std::int64_t group = 0; row >= 0 && group < groups(); ++group) {
        const CodedGroup held = taken(span_of(data_->data() + panel * panel_bytes(), code_, group), output);
        const std::int64_t begin = group * kCodedGroup;
        for (std::int64_t input = 0; input < std::min(kCodedGroup, inputs_ - begin); ++input) {
          weights[static_cast<std::size_t>(row * inputs_ + begin + input)] = decoded(held, code_, input);
        }
      }
    }
  }
}

void multiply_coded(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output, std::int64_t first,
                    std::int64_t last, IntegerIsa isa) {
  if (weights.gated() && !output.activation) {
    throw std::invalid_argument("a product by a gated matrix needs the gate's activation");
  }
  if (x.one_scale() != scales_rows(weights.code())) {
    throw std::invalid_argument("activations have one scale a row for weights of one scale an output, and else many");
  }
  if (isa == IntegerIsa::amx_int8 && x.rows() >= codes::fewest_on_tiles(weights.code())) {
    codes::amx_int8_kernel(weights.code())(weights, x, output, first, last);
    return;
  }
  const codes::MultiplyPanel multiply = kernel_of(isa, weights.code());
  const std::int64_t together = weights.panels_together();
  const std::int64_t width = together * codes::kOutputs;
  std::array<float, 2 * codes::kOutputs * codes::kMostRows> sums{};
  for (std::int64_t panel = first; panel < last; panel += together) {
    for (std::int64_t row = 0; row < x.rows(); row += codes::kMostRows) {
      const std::int64_t rows = std::min(codes::kMostRows, x.rows() - row);
      for (std::int64_t part = 0; part < together; ++part) {
        multiply(weights.panel(panel + part), x, row, rows, sums.data() + part * codes::kOutputs, width);
      }
      codes::finish_rows(output, row, sums.data(), rows, panel * codes::kOutputs, width);
    }
  }
}

}  // namespace decodelab
