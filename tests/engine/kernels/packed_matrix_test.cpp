// Skinny products equal a sum in double precision, for awkward shapes and every set of instructions that this processor has.
#include "engine/kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

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

struct Shape {
  std::int64_t rows;
  std::int64_t outputs;
  std::int64_t inputs;
};

std::vector<float> product_of(const Shape& shape, ElementType dtype, CpuIsa isa, bool with_bias,
                              const std::vector<float>& x) {
  PackedMatrix packed(shape.outputs, shape.inputs, dtype);
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

class SkinnyProductTest : public ::testing::TestWithParam<ElementType> {};

TEST_P(SkinnyProductTest, EqualsASumInDoublePrecision) {
  const ElementType dtype = GetParam();
  const double tolerance = dtype == ElementType::float32 ? 1e-5 : 1e-2;
  for (const CpuIsa isa : supported(dtype)) {
    for (const std::int64_t rows : {1, 2, 5, 6, 7, 13, 16, 17, 32, 33}) {
      for (const std::int64_t outputs : {1, 63, 64, 65, 200}) {
        for (const std::int64_t inputs : {1, 2, 3, 64, 129, 770}) {
          const Shape shape{rows, outputs, inputs};
          const auto x = random_values(rows * inputs, 2);
          const auto weights = random_values(outputs * inputs, 1);
          const auto bias = random_values(outputs, 3);
          const auto y = product_of(shape, dtype, isa, rows % 2 == 0, x);
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t output = 0; output < outputs; ++output) {
              double sum = rows % 2 == 0 ? bias[static_cast<std::size_t>(output)] : 0.0;
              for (std::int64_t input = 0; input < inputs; ++input) {
                sum += static_cast<double>(x[static_cast<std::size_t>(row * inputs + input)]) *
                       weights[static_cast<std::size_t>(output * inputs + input)];
              }
              ASSERT_NEAR(y[static_cast<std::size_t>(row * outputs + output)], sum, tolerance * (1 + std::abs(sum)))
                  << to_string(isa) << ", " << rows << " rows, " << outputs << " outputs, " << inputs << " inputs";
            }
          }
        }
      }
    }
  }
}

TEST_P(SkinnyProductTest, GivesARowTheSameBitsInAnyBatch) {
  const ElementType dtype = GetParam();
  const std::int64_t inputs = 777;
  const std::int64_t outputs = 70;
  for (const CpuIsa isa : supported(dtype)) {
    const auto all = random_values(13 * inputs, 2);
    const auto together = product_of({13, outputs, inputs}, dtype, isa, true, all);
    for (const std::int64_t row : {0, 5, 12}) {
      const std::vector<float> one(all.begin() + row * inputs, all.begin() + (row + 1) * inputs);
      const auto alone = product_of({1, outputs, inputs}, dtype, isa, true, one);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * outputs)) << to_string(isa);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PackedMatrix, SkinnyProductTest,
                         ::testing::Values(ElementType::float32, ElementType::bfloat16),
                         [](const auto& type) { return type.param == ElementType::float32 ? "Fp32" : "Bf16"; });

TEST(PackedMatrix, RefusesOtherTypes) { EXPECT_THROW(PackedMatrix(1, 1, ElementType::float16), std::invalid_argument); }

}  // namespace
}  // namespace decodelab
