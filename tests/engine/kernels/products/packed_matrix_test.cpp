// Skinny products equal a sum in double precision, for awkward shapes and every set of instructions that this processor
// has.
#include "engine/kernels/products/packed_matrix.h"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

std::vector<CpuIsa> supported(ElementType dtype) {
  std::vector<CpuIsa> isas;
  for (const CpuIsa isa : {CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16, CpuIsa::amx_bf16}) {
    if (isa <= best_cpu_isa(dtype)) {
      isas.push_back(isa);
    }
  }
  return isas;
}

/// Values that both types hold exactly.
std::vector<float> random_values(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> integers(-64, 64);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(integers(generator)) / 64;
  }
  return values;
}

/// The same values in memory as that type has them.
std::vector<std::byte> stored(const std::vector<float>& values, ElementType dtype) {
  std::vector<std::byte> bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::array<std::byte, 4>>(value);
    bytes.insert(bytes.end(), bits.begin() + (dtype == ElementType::bfloat16 ? 2 : 0), bits.end());
  }
  return bytes;
}

std::vector<float> loaded(const std::vector<std::byte>& bytes, ElementType dtype) {
  const std::size_t size = element_bytes(dtype);
  std::vector<float> values;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    std::array<std::byte, 4> bits{};
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, bits.end() - static_cast<std::ptrdiff_t>(size));
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

struct MatrixShape {
  std::int64_t rows;
  std::int64_t outputs;
  std::int64_t inputs;
};

std::vector<float> product_of(const MatrixShape& shape, ElementType dtype, CpuIsa isa, bool with_bias,
                              const std::vector<float>& x) {
  PackedMatrix packed(shape.outputs, shape.inputs, dtype, weight_order(isa));
  packed.fill(stored(random_values(shape.outputs * shape.inputs, 1), dtype).data(), 0, packed.panels());
  const auto rows = stored(x, dtype);
  const auto bias = stored(random_values(shape.outputs, 3), dtype);
  std::vector<std::byte> y(static_cast<std::size_t>(shape.rows * shape.outputs) * element_bytes(dtype));
  const SkinnyProduct product{.weights = packed,
                              .x = rows.data(),
                              .x_stride = shape.inputs,
                              .rows = shape.rows,
                              .bias = with_bias ? bias.data() : nullptr,
                              .y = y.data(),
                              .y_stride = shape.outputs};
  // Two ranges, as two threads would take them.
  multiply_panels(product, 0, packed.panels() / 2, isa);
  multiply_panels(product, packed.panels() / 2, packed.panels(), isa);
  return loaded(y, dtype);
}

/// The product in double precision, and where `y` is not that.
void expect_sums(const MatrixShape& shape, bool with_bias, double tolerance, const std::vector<float>& x,
                 const std::vector<float>& y) {
  const auto weights = random_values(shape.outputs * shape.inputs, 1);
  const auto bias = random_values(shape.outputs, 3);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t output = 0; output < shape.outputs; ++output) {
      double sum = with_bias ? bias[static_cast<std::size_t>(output)] : 0.0;
      for (std::int64_t input = 0; input < shape.inputs; ++input) {
        sum += static_cast<double>(x[static_cast<std::size_t>(row * shape.inputs + input)]) *
               weights[static_cast<std::size_t>(output * shape.inputs + input)];
      }
      ASSERT_NEAR(y[static_cast<std::size_t>(row * shape.outputs + output)], sum, tolerance * (1 + std::abs(sum)))
          << shape.rows << " rows, " << shape.outputs << " outputs, " << shape.inputs << " inputs";
    }
  }
}

class SkinnyProductTest : public ::testing::TestWithParam<ElementType> {};

TEST_P(SkinnyProductTest, EqualsASumInDoublePrecision) {
  const ElementType dtype = GetParam();
  const double tolerance = dtype == ElementType::float32 ? 1e-5 : 1e-2;
  for (const CpuIsa isa : supported(dtype)) {
    for (const std::int64_t rows : {1, 2, 5, 6, 7, 13, 16, 17, 32, 33}) {
      for (const std::int64_t outputs : {1, 63, 64, 65, 200}) {
        for (const std::int64_t inputs : {1, 2, 3, 64, 129, 770}) {
          const MatrixShape shape{rows, outputs, inputs};
          const auto x = random_values(rows * inputs, 2);
          SCOPED_TRACE(to_string(isa));
          expect_sums(shape, rows % 2 == 0, tolerance, x, product_of(shape, dtype, isa, rows % 2 == 0, x));
        }
      }
    }
  }
}

/// act(x . gate + b) * (x . up + b) of a gated matrix, for one result, in double precision.
double gated_sum(const MatrixShape& shape, std::int64_t row, std::int64_t result, const std::vector<float>& x) {
  const auto weights = random_values(shape.outputs * shape.inputs, 1);
  const auto bias = random_values(shape.outputs, 3);
  const auto sum = [&](std::int64_t output) {
    double total = bias[static_cast<std::size_t>(output)];
    for (std::int64_t input = 0; input < shape.inputs; ++input) {
      total += static_cast<double>(x[static_cast<std::size_t>(row * shape.inputs + input)]) *
               weights[static_cast<std::size_t>(output * shape.inputs + input)];
    }
    return total;
  };
  const double gate = sum(result);
  return gate / (1 + std::exp(-gate)) * sum(shape.outputs / 2 + result);
}

TEST_P(SkinnyProductTest, MultipliesByTheActivationOfAGate) {
  const ElementType dtype = GetParam();
  const double tolerance = dtype == ElementType::float32 ? 1e-5 : 1e-2;
  for (const CpuIsa isa : supported(dtype)) {
    for (const MatrixShape shape : {MatrixShape{1, 2, 3}, MatrixShape{3, 32, 64}, MatrixShape{7, 34, 65},
                                    MatrixShape{33, 130, 96}, MatrixShape{40, 400, 33}}) {
      const std::int64_t results = shape.outputs / 2;
      const auto x = random_values(shape.rows * shape.inputs, 2);
      PackedMatrix packed(shape.outputs, shape.inputs, dtype, weight_order(isa), /*gated=*/true);
      packed.fill(stored(random_values(shape.outputs * shape.inputs, 1), dtype).data(), 0, packed.panels());
      const auto rows = stored(x, dtype);
      const auto bias = stored(random_values(shape.outputs, 3), dtype);
      // A row of room more, so that a write behind the last result is seen.
      std::vector<std::byte> y(static_cast<std::size_t>((shape.rows + 1) * results) * element_bytes(dtype));
      multiply_panels({.weights = packed,
                       .x = rows.data(),
                       .x_stride = shape.inputs,
                       .rows = shape.rows,
                       .bias = bias.data(),
                       .y = y.data(),
                       .y_stride = results,
                       .activation = Activation::silu},
                      0, packed.panels(), isa);
      const std::vector<float> found = loaded(y, dtype);
      for (std::int64_t row = 0; row < shape.rows; ++row) {
        for (std::int64_t result = 0; result < results; ++result) {
          const double expected = gated_sum(shape, row, result, x);
          ASSERT_NEAR(found[static_cast<std::size_t>(row * results + result)], expected,
                      tolerance * (1 + std::abs(expected)))
              << to_string(isa) << ": row " << row << ", result " << result << " of " << results;
        }
      }
      for (std::int64_t result = 0; result < results; ++result) {
        ASSERT_EQ(found[static_cast<std::size_t>(shape.rows * results + result)], 0) << to_string(isa);
      }
    }
  }
}

TEST_P(SkinnyProductTest, EqualsThatSumForThePromptsOfABatch) {
  const ElementType dtype = GetParam();
  const CpuIsa isa = best_cpu_isa(dtype);
  // More rows than are multiplied together, and inputs in one part and in two.
  for (const MatrixShape shape :
       {MatrixShape{65, 70, 1534}, MatrixShape{66, 70, 1537}, MatrixShape{131, 33, 3072}, MatrixShape{700, 100, 96}}) {
    const auto x = random_values(shape.rows * shape.inputs, 2);
    expect_sums(shape, true, dtype == ElementType::float32 ? 1e-5 : 1e-2, x, product_of(shape, dtype, isa, true, x));
  }
}

TEST_P(SkinnyProductTest, GivesARowTheSameBitsInAnyBatch) {
  const ElementType dtype = GetParam();
  const std::int64_t outputs = 70;
  for (const CpuIsa isa : supported(dtype)) {
    for (const std::int64_t inputs : {777, 3100}) {
      const auto all = random_values(300 * inputs, 2);
      const auto alone = [&](std::int64_t row) {
        const std::vector<float> one(all.begin() + row * inputs, all.begin() + (row + 1) * inputs);
        return product_of({1, outputs, inputs}, dtype, isa, true, one);
      };
      for (const std::int64_t rows : {13, 300}) {
        const auto together =
            product_of({rows, outputs, inputs}, dtype, isa, true, {all.begin(), all.begin() + rows * inputs});
        for (const std::int64_t row : {std::int64_t{0}, std::int64_t{5}, rows - 1}) {
          const auto one = alone(row);
          EXPECT_TRUE(std::equal(one.begin(), one.end(), together.begin() + row * outputs)) << to_string(isa);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PackedMatrix, SkinnyProductTest,
                         ::testing::Values(ElementType::float32, ElementType::bfloat16),
                         [](const auto& type) { return type.param == ElementType::float32 ? "Fp32" : "Bf16"; });

TEST(PackedMatrix, RefusesOtherTypes) {
  EXPECT_THROW(PackedMatrix(1, 1, ElementType::float16, WeightOrder::panels), std::invalid_argument);
  EXPECT_THROW(PackedMatrix(1, 1, ElementType::float32, WeightOrder::tiles), std::invalid_argument);
}

TEST(PackedMatrix, RefusesAGateWithoutItsHalfOrItsActivation) {
  EXPECT_THROW(PackedMatrix(3, 1, ElementType::float32, WeightOrder::panels, /*gated=*/true), std::invalid_argument);
  const PackedMatrix gated(2, 1, ElementType::float32, WeightOrder::panels, /*gated=*/true);
  float value = 0;
  const SkinnyProduct product{
      .weights = gated, .x = &value, .x_stride = 1, .rows = 1, .bias = nullptr, .y = &value, .y_stride = 1};
  EXPECT_THROW(multiply_panels(product, 0, gated.panels(), CpuIsa::portable), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
