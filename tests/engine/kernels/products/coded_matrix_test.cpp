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

/// Those that weights are rounded to, and those that are read from files.
constexpr WeightCode kCodes[] = {WeightCode::q8, WeightCode::q4, WeightCode::q4_least};
constexpr WeightCode kAllCodes[] = {WeightCode::q8,       WeightCode::q8_row, WeightCode::q4,
                                    WeightCode::q4_least, WeightCode::q4_k,   WeightCode::q6_k};

bool shares_scales(WeightCode code) { return codes::groups_of_span(code) > 1; }

/// A group of any numbers, whose scales are those of its row and span.
CodedGroup random_group(WeightCode code, std::int64_t row, std::int64_t group) {
  // Generators that begin at once: a weight is asked for on its own.
  std::minstd_rand of_span(static_cast<std::uint32_t>(1 + 1000 * row + group / kGroupsOfK));
  std::minstd_rand of_group(static_cast<std::uint32_t>(77777 + 1000 * row + group));
  CodedGroup random{.scale = to_half(static_cast<float>(of_span() % 100 + 1) * 1e-4F),
                    .least = to_half(code == WeightCode::q4_k ? static_cast<float>(of_span() % 100) * 1e-3F : 0)};
  for (std::int8_t& step : random.steps) {
    step = static_cast<std::int8_t>(static_cast<int>(of_group() % 256) - 128);
  }
  if (code == WeightCode::q4_k) {
    random.steps.fill(static_cast<std::int8_t>(of_group() % 64));
    random.least_step = static_cast<std::uint8_t>(of_group() % 64);
  }
  for (std::uint8_t& one : random.codes) {
    one = static_cast<std::uint8_t>(of_group() % (code == WeightCode::q4_k ? 16 : 64));
  }
  return random;
}

std::vector<IntegerIsa> supported_integer_isas() {
  std::vector<IntegerIsa> isas;
  for (const IntegerIsa isa : {IntegerIsa::portable, IntegerIsa::avx2, IntegerIsa::avx512_vnni, IntegerIsa::amx_int8}) {
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
    if (shares_scales(code)) {
      return random_group(code, row, group);
    }
    const std::int64_t begin = group * kCodedGroup;
    if (scales_rows(code)) {
      return coded_by(row_scale(3), weights.data() + row * inputs + begin, std::min(kCodedGroup, inputs - begin));
    }
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

/// Rows, and the memory that they lie in.
struct HeldRows {
  std::vector<std::byte> memory;
  CodedRows rows;

  HeldRows(const std::vector<float>& x, std::int64_t count, std::int64_t inputs, WeightCode code = WeightCode::q8)
      : memory(static_cast<std::size_t>(CodedRows::bytes(count, inputs))),
        rows(count, inputs, memory, scales_rows(code)) {
    rows.fill(x.data(), ElementType::float32, inputs, 0, count / 2);
    rows.fill(x.data(), ElementType::float32, inputs, count / 2, count);
  }
};

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
  for (const WeightCode code : kAllCodes) {
    for (const std::int64_t outputs : {1, 15, 16, 17, 70}) {
      for (const std::int64_t inputs : {1, 31, 32, 33, 160, 330, 512}) {
        if (shares_scales(code) && inputs % 256 != 0) {
          continue;
        }
        const Coded weights{outputs, inputs, code};
        const CodedMatrix matrix = weights.matrix();
        for (const std::int64_t rows : {1, 2, 7, 8, 9, 16, 37, 64}) {
          const HeldRows x(normal_values(rows * inputs, 2), rows, inputs, code);
          const std::vector<float> bias = normal_values(outputs, 3);
          const bool with_bias = rows % 2 == 0;
          const auto y = product_of(matrix, x.rows, with_bias ? &bias : nullptr, {}, IntegerIsa::portable);
          for (std::int64_t row = 0; row < std::min<std::int64_t>(rows, 3); ++row) {
            for (std::int64_t output = 0; output < outputs; ++output) {
              double sum = with_bias ? bias[static_cast<std::size_t>(output)] : 0;
              for (std::int64_t input = 0; input < inputs; ++input) {
                sum += static_cast<double>(weights.weight(output, input)) * x.rows.codes(row)[input] *
                       x.rows.scales(row)[scales_rows(code) ? 0 : input / kCodedGroup];
              }
              ASSERT_NEAR(y[static_cast<std::size_t>(row * outputs + output)], sum, 2e-5 * (1 + std::abs(sum)))
                  << to_string(code) << ", " << rows << " rows, " << outputs << " outputs, " << inputs << " inputs";
            }
          }
          for (const IntegerIsa isa : supported_integer_isas()) {
            ASSERT_EQ(product_of(matrix, x.rows, with_bias ? &bias : nullptr, {}, isa), y)
                << to_string(isa) << ", " << to_string(code) << ", " << rows << " rows, " << outputs << " outputs, "
                << inputs << " inputs";
          }
        }
      }
    }
  }
}

TEST(CodedProduct, GivesARowTheSameBitsInAnyBatch) {
  constexpr std::int64_t kRows = 41;
  for (const WeightCode code : {WeightCode::q4, WeightCode::q8_row}) {
    const Coded weights{40, 96, code};
    const CodedMatrix matrix = weights.matrix();
    const std::vector<float> all = normal_values(kRows * 96, 2);
    const auto together = product_of(matrix, HeldRows(all, kRows, 96, code).rows, nullptr, {}, best_integer_isa());
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::vector<float> alone(all.begin() + row * 96, all.begin() + (row + 1) * 96);
      const auto y = product_of(matrix, HeldRows(alone, 1, 96, code).rows, nullptr, {}, best_integer_isa());
      EXPECT_TRUE(std::equal(y.begin(), y.end(), together.begin() + row * 40)) << to_string(code) << ", row " << row;
    }
  }
}

TEST(CodedProduct, OfAGatedMatrixMultipliesTheGateByTheOtherHalf) {
  constexpr std::int64_t kRows = 33;
  for (const WeightCode code : {WeightCode::q8, WeightCode::q8_row, WeightCode::q4, WeightCode::q4_least}) {
    for (const std::int64_t results : {1, 16, 21, 48}) {
      const Coded weights{2 * results, 64, code};
      const HeldRows x(normal_values(kRows * 64, 2), kRows, 64, code);
      const auto gated = product_of(weights.matrix(true), x.rows, nullptr, Activation::silu, best_integer_isa());
      const auto plain = product_of(weights.matrix(), x.rows, nullptr, {}, best_integer_isa());
      for (std::int64_t row = 0; row < kRows; ++row) {
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

TEST(CodedMatrix, GivesBackWhatItsCodesStandFor) {
  for (const WeightCode code : kAllCodes) {
    for (const bool gated : {false, true}) {
      const std::int64_t inputs = shares_scales(code) ? 256 : 70;
      const Coded weights{42, inputs, code};
      const CodedMatrix matrix = weights.matrix(gated);
      std::vector<float> values(static_cast<std::size_t>(42 * inputs));
      matrix.decode(0, 2, values);
      matrix.decode(2, matrix.panels(), values);
      for (std::int64_t row = 0; row < 42; ++row) {
        for (std::int64_t input = 0; input < inputs; ++input) {
          ASSERT_EQ(values[static_cast<std::size_t>(row * inputs + input)], weights.weight(row, input))
              << to_string(code) << ", " << row << ", " << input;
        }
      }
    }
  }
}

TEST(CodedMatrix, TakesTheBytesThatAFileTakes) {
  EXPECT_EQ(CodedMatrix::bytes_of(32, 256, WeightCode::q8, false), 32 * 8 * 34) << "Q8_0";
  EXPECT_EQ(CodedMatrix::bytes_of(32, 256, WeightCode::q8_row, false), 32 * 256 + 2 * 64) << "a line of scales a panel";
  EXPECT_EQ(CodedMatrix::bytes_of(32, 256, WeightCode::q4, true), 32 * 8 * 18) << "Q4_0";
  EXPECT_EQ(CodedMatrix::bytes_of(32, 256, WeightCode::q4_least, false), 32 * 8 * 20) << "Q4_1";
  EXPECT_EQ(CodedMatrix::bytes_of(32, 256, WeightCode::q4_k, false), 32 * 144) << "Q4_K";
  EXPECT_EQ(CodedMatrix::bytes_of(32, 256, WeightCode::q6_k, false), 32 * 210) << "Q6_K";
  EXPECT_THROW(CodedMatrix(16, 288, WeightCode::q4_k), std::invalid_argument);
  EXPECT_THROW(coded(std::vector<float>(32).data(), 32, WeightCode::q6_k), std::invalid_argument);
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
  const HeldRows coded(x, 2, 40);
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t input = 0; input < 40; ++input) {
      const float scale = coded.rows.scales(row)[input / kCodedGroup];
      EXPECT_NEAR(scale * static_cast<float>(coded.rows.codes(row)[input]),
                  x[static_cast<std::size_t>(row * 40 + input)], 0.501F * scale);
    }
    for (std::int64_t input = 40; input < 64; ++input) {
      EXPECT_EQ(coded.rows.codes(row)[input], 0) << "padding";
    }
  }
  const HeldRows of_rows(x, 2, 40, WeightCode::q8_row);
  for (std::int64_t row = 0; row < 2; ++row) {
    std::int32_t sum = 0;
    for (std::int64_t input = 0; input < 64; ++input) {
      const float value = input < 40 ? x[static_cast<std::size_t>(row * 40 + input)] : 0;
      const float scale = of_rows.rows.scales(row)[0];
      EXPECT_NEAR(scale * static_cast<float>(of_rows.rows.codes(row)[input]), value, 0.501F * scale);
      sum += of_rows.rows.codes(row)[input];
    }
    EXPECT_EQ(of_rows.rows.sums(row)[0], sum);
  }
  x[50] = std::numeric_limits<float>::quiet_NaN();
  for (const WeightCode code : {WeightCode::q8, WeightCode::q8_row}) {
    const Coded weights{20, 40, code};
    for (const IntegerIsa isa : supported_integer_isas()) {
      const auto y = product_of(weights.matrix(), HeldRows(x, 2, 40, code).rows, nullptr, {}, isa);
      EXPECT_TRUE(std::isfinite(y[19]));
      EXPECT_TRUE(std::isnan(y[20])) << "the row that holds it";
    }
  }
  EXPECT_THROW(product_of(Coded{20, 40, WeightCode::q8_row}.matrix(), coded.rows, nullptr, {}, IntegerIsa::portable),
               std::invalid_argument);
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
