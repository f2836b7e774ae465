// Products by weights of 8 and 4 bits equal sums in double precision over the weights and activations that the codes
// stand for, on every set of instructions, with the same bits.
#include "engine/kernels/products/coded/coded_matrix.h"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kernels/half.h"

namespace decodelab {
namespace {

constexpr WeightCode kCodes[] = {WeightCode::q8, WeightCode::q4, WeightCode::q4_least};

std::vector<IntegerIsa> supported_integer_isas() {
  std::vector<IntegerIsa> isas;
  for (const IntegerIsa isa : {IntegerIsa::portable, IntegerIsa::avx2, IntegerIsa::avx512_vnni}) {
    if (isa <= best_integer_isa()) {
      isas.push_back(isa);
    }
  }
  return isas;
}

std::vector<float> normal_values(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> values(0.02F, 0.3F);
  std::vector<float> all(static_cast<std::size_t>(count));
  for (float& value : all) {
    value = values(generator);
  }
  return all;
}

/// [N, K] coded, and what its codes stand for.
struct Coded {
  std::int64_t outputs;
  std::int64_t inputs;
  WeightCode code;
  std::vector<float> weights = normal_values(outputs * inputs, 1);

  CodedGroup group(std::int64_t row, std::int64_t group) const {
    const std::int64_t begin = group * kCodedGroup;
    return coded(weights.data() + row * inputs + begin, std::min(kCodedGroup, inputs - begin), code);
  }
  float weight(std::int64_t row, std::int64_t input) const {
    return decoded(group(row, input / kCodedGroup), code, input % kCodedGroup);
  }
  CodedMatrix matrix(bool gated = false) const {
    CodedMatrix filled(outputs, inputs, code, gated);
    const auto group_of = [this](std::int64_t row, std::int64_t of_row) { return group(row, of_row); };
    filled.fill(group_of, 0, filled.panels() / 2);
    filled.fill(group_of, filled.panels() / 2, filled.panels());
    return filled;
  }
};

CodedRows coded_rows(const std::vector<float>& x, std::int64_t rows, std::int64_t inputs) {
  CodedRows coded(rows, inputs);
  coded.fill(x.data(), ElementType::float32, inputs, 0, rows / 2);
  coded.fill(x.data(), ElementType::float32, inputs, rows / 2, rows);
  return coded;
}

std::vector<float> product_of(const CodedMatrix& matrix, const CodedRows& x, const std::vector<float>* bias,
                              std::optional<Activation> activation, IntegerIsa isa) {
  std::vector<float> y(static_cast<std::size_t>(x.rows() * matrix.results()), -77);
  const ProductOutput output{.outputs = matrix.outputs(),
                             .gated = matrix.gated(),
                             .dtype = ElementType::float32,
                             .bias = bias == nullptr ? nullptr : bias->data(),
                             .y = y.data(),
                             .y_stride = matrix.results(),
                             .activation = activation};
  const std::int64_t middle = matrix.panels() / 2 / matrix.panels_together() * matrix.panels_together();
  multiply_coded(matrix, x, output, 0, middle, isa);
  multiply_coded(matrix, x, output, middle, matrix.panels(), isa);
  return y;
}

TEST(CodedProduct, EqualsASumInDoublePrecisionWithTheSameBitsOnEveryInstructionSet) {
  for (const WeightCode code : kCodes) {
    for (const std::int64_t outputs : {1, 15, 16, 17, 70}) {
      for (const std::int64_t inputs : {1, 31, 32, 33, 160, 330}) {
        const Coded weights{outputs, inputs, code};
        const CodedMatrix matrix = weights.matrix();
        for (const std::int64_t rows : {1, 2, 7, 8, 9, 64}) {
          const CodedRows x = coded_rows(normal_values(rows * inputs, 2), rows, inputs);
          const std::vector<float> bias = normal_values(outputs, 3);
          const bool with_bias = rows % 2 == 0;
          const auto y = product_of(matrix, x, with_bias ? &bias : nullptr, {}, IntegerIsa::portable);
          for (std::int64_t row = 0; row < std::min<std::int64_t>(rows, 3); ++row) {
            for (std::int64_t output = 0; output < outputs; ++output) {
              double sum = with_bias ? bias[static_cast<std::size_t>(output)] : 0;
              for (std::int64_t input = 0; input < inputs; ++input) {
                sum += static_cast<double>(weights.weight(output, input)) * x.codes(row)[input] *
                       x.scales(row)[input / kCodedGroup];
              }
              ASSERT_NEAR(y[static_cast<std::size_t>(row * outputs + output)], sum, 1e-5 * (1 + std::abs(sum)))
                  << to_string(code) << ", " << rows << " rows, " << outputs << " outputs, " << inputs << " inputs";
            }
          }
          for (const IntegerIsa isa : supported_integer_isas()) {
            ASSERT_EQ(product_of(matrix, x, with_bias ? &bias : nullptr, {}, isa), y)
                << to_string(isa) << ", " << to_string(code) << ", " << rows << " rows, " << outputs << " outputs, "
                << inputs << " inputs";
          }
        }
      }
    }
  }
}

TEST(CodedProduct, GivesARowTheSameBitsInAnyBatch) {
  const Coded weights{40, 96, WeightCode::q4};
  const CodedMatrix matrix = weights.matrix();
  const std::vector<float> all = normal_values(9 * 96, 2);
  const auto together = product_of(matrix, coded_rows(all, 9, 96), nullptr, {}, best_integer_isa());
  for (std::int64_t row = 0; row < 9; ++row) {
    const std::vector<float> alone(all.begin() + row * 96, all.begin() + (row + 1) * 96);
    const auto y = product_of(matrix, coded_rows(alone, 1, 96), nullptr, {}, best_integer_isa());
    EXPECT_TRUE(std::equal(y.begin(), y.end(), together.begin() + row * 40)) << "row " << row;
  }
}

TEST(CodedProduct, OfAGatedMatrixMultipliesTheGateByTheOtherHalf) {
  for (const WeightCode code : kCodes) {
    for (const std::int64_t results : {1, 16, 21, 48}) {
      const Coded weights{2 * results, 64, code};
      const CodedRows x = coded_rows(normal_values(3 * 64, 2), 3, 64);
      const auto gated = product_of(weights.matrix(true), x, nullptr, Activation::silu, best_integer_isa());
      const auto plain = product_of(weights.matrix(), x, nullptr, {}, best_integer_isa());
      for (std::int64_t row = 0; row < 3; ++row) {
        for (std::int64_t result = 0; result < results; ++result) {
          const double gate = plain[static_cast<std::size_t>(row * 2 * results + result)];
          const double value = plain[static_cast<std::size_t>(row * 2 * results + results + result)];
          const double expected = gate / (1 + std::exp(-gate)) * value;
          EXPECT_NEAR(gated[static_cast<std::size_t>(row * results + result)], expected,
                      1e-5 * (1 + std::abs(expected)));
        }
      }
    }
  }
}

TEST(CodedWeights, AreAsNearAsTheirBitsAllow) {
  const std::vector<float> weights = normal_values(kCodedGroup * 200, 5);
  std::vector<double> errors;
  for (const WeightCode code : kCodes) {
    double squares = 0;
    for (std::int64_t begin = 0; begin < std::ssize(weights); begin += kCodedGroup) {
      const CodedGroup group = coded(weights.data() + begin, kCodedGroup, code);
      for (std::int64_t index = 0; index < kCodedGroup; ++index) {
        squares += std::pow(decoded(group, code, index) - weights[static_cast<std::size_t>(begin + index)], 2);
      }
    }
    errors.push_back(std::sqrt(squares / static_cast<double>(weights.size())) / 0.3);
  }
  EXPECT_LT(errors[0], 0.006) << "8 bits";
  EXPECT_LT(errors[1], 0.1) << "4 bits";
  EXPECT_LT(errors[2], errors[1]) << "a least weight is worth its bits";
  EXPECT_GT(errors[2], 0.02);
}

TEST(CodedWeights, HoldWhatTheyCanHoldExactly) {
  for (const WeightCode code : kCodes) {
    std::vector<float> weights(kCodedGroup);
    const std::int64_t most = code == WeightCode::q8 ? 256 : 16;
    for (std::int64_t index = 0; index < kCodedGroup; ++index) {
      weights[static_cast<std::size_t>(index)] =
          0.5F * static_cast<float>((index * 37 + (code == WeightCode::q8 ? 1 : 0)) % most - zero_of(code));
    }
    if (code == WeightCode::q8) {
      weights[0] = 0.5F * 127;  // The scale is that of the largest magnitude.
    }
    const CodedGroup group = coded(weights.data(), kCodedGroup, code);
    for (std::int64_t index = 0; index < kCodedGroup; ++index) {
      EXPECT_NEAR(decoded(group, code, index), weights[static_cast<std::size_t>(index)], 0.26) << to_string(code);
    }
    const CodedGroup zeros = coded(std::vector<float>(kCodedGroup).data(), kCodedGroup, code);
    for (std::int64_t index = 0; index < kCodedGroup; ++index) {
      EXPECT_EQ(decoded(zeros, code, index), 0) << to_string(code);
    }
  }
}

TEST(CodedActivations, AreWithinHalfAStepAndKeepWhatIsNoNumber) {
  std::vector<float> x = normal_values(2 * 40, 4);
  x[3] = 1e-38F;
  const CodedRows coded = coded_rows(x, 2, 40);
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t input = 0; input < 40; ++input) {
      const float scale = coded.scales(row)[input / kCodedGroup];
      EXPECT_NEAR(scale * static_cast<float>(coded.codes(row)[input]), x[static_cast<std::size_t>(row * 40 + input)],
                  0.501F * scale);
    }
    for (std::int64_t input = 40; input < 64; ++input) {
      EXPECT_EQ(coded.codes(row)[input], 0) << "padding";
    }
  }
  x[50] = std::numeric_limits<float>::quiet_NaN();
  const Coded weights{20, 40, WeightCode::q8};
  for (const IntegerIsa isa : supported_integer_isas()) {
    const auto y = product_of(weights.matrix(), coded_rows(x, 2, 40), nullptr, {}, isa);
    EXPECT_TRUE(std::isfinite(y[19]));
    EXPECT_TRUE(std::isnan(y[20])) << "the row that holds it";
  }
}

TEST(Half, HoldsEveryNumberOfSixteenBitsAndRoundsToTheNearest) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_half(static_cast<std::uint16_t>(bits));
    if (!std::isnan(value)) {
      ASSERT_EQ(to_half(value), bits);
    }
  }
  EXPECT_EQ(from_half(to_half(1 + 0x1p-11F)), 1) << "half-way, to the even one";
  EXPECT_EQ(from_half(to_half(1 + 3 * 0x1p-11F)), 1 + 0x1p-9F);
  EXPECT_EQ(from_half(to_half(1 + 0x1.8p-11F)), 1 + 0x1p-10F);
  EXPECT_EQ(from_half(to_half(65519)), 65504);
  EXPECT_TRUE(std::isinf(from_half(to_half(65520))));
  EXPECT_EQ(from_half(to_half(0x1p-26F)), 0);
  EXPECT_EQ(from_half(to_half(-0x1.8p-25F)), -0x1p-24F);
}

}  // namespace
}  // namespace decodelab
