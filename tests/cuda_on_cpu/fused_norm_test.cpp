// Residual and layer norm on the CPU's device, against sums in double precision.
#include "engine/kernels/elementwise/fused_norm.cuh"

#include "tests/cuda_on_cpu/kernel_test.h"

namespace decodelab::cuda_on_cpu {
namespace {

constexpr float kEpsilon = 1e-5f;

struct Shape {
  std::int64_t rows;
  std::int64_t width;
};

using FusedNorm = KernelTest;

/// `skew`: bytes that rows begin behind a multiple of 16.
template <typename Element>
void expect_norm(const Shape& shape, bool adds, std::size_t skew, NormKind kind = NormKind::layer) {
  const bool layer = kind == NormKind::layer;
  SCOPED_TRACE(std::to_string(shape.rows) + " rows of " + std::to_string(shape.width) + (adds ? ", added" : ""));
  const auto [rows, width] = shape;
  Numbers numbers;
  const Memory<Element> residual("residual", numbers.next<Element>(rows * width, 3.0f), skew);
  const Memory<Element> addend("addend", numbers.next<Element>(rows * width), skew);
  const Memory<Element> weight("weight", numbers.next<Element>(width), skew);
  const Memory<Element> bias("bias", numbers.next<Element>(width), skew);
  const Memory<Element> sum("sum", rows * width, skew);
  const Memory<Element> normed("normed", rows * width, skew);
  launch_fused_norm({.kind = kind,
                     .element = OfElement<Element>::kType,
                     .rows = rows,
                     .width = width,
                     .addend = adds ? addend.data() : nullptr,
                     .residual = residual.data(),
                     .weight = weight.data(),
                     .bias = layer ? bias.data() : nullptr,
                     .epsilon = kEpsilon,
                     .sum = adds ? sum.data() : nullptr,
                     .normed = normed.data()},
                    nullptr);
  Difference off;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<double> x;
    for (std::int64_t at = row * width; at < (row + 1) * width; ++at) {
      // The sum is rounded to the element's type before it is normed.
      const double exact = residual.number(at) + (adds ? addend.number(at) : 0.0);
      x.push_back(number_of(element_of<Element>(static_cast<float>(exact))));
      if (adds) {
        ASSERT_EQ(sum.number(at), x.back()) << "sum of element " << at;
      } else {
        ASSERT_FALSE(sum.is_written(at));
      }
    }
    double mean = 0.0;
    double squares = 0.0;
    for (const double value : x) {
      mean += layer ? value / static_cast<double>(width) : 0.0;
    }
    for (const double value : x) {
      squares += (value - mean) * (value - mean) / static_cast<double>(width);
    }
    for (std::int64_t column = 0; column < width; ++column) {
      const double scaled = (x[static_cast<std::size_t>(column)] - mean) / std::sqrt(squares + double{kEpsilon});
      const double added_to_weight = kind == NormKind::rms_plus_one ? 1.0 : 0.0;
      off.add(normed.number(row * width + column),
              scaled * (weight.number(column) + added_to_weight) + (layer ? bias.number(column) : 0.0));
    }
  }
  EXPECT_LE(off.relative(), OfElement<Element>::kTolerance);
}

TEST_F(FusedNorm, EqualsTheReferenceForAwkwardRows) {
  in_every_type_and_order([]<typename Element>() {
    for (const Shape shape : {Shape{1, 1}, {33, 12}, {3, 33}, {2, 255}, {33, 256}, {1, 1031}, {1, 4800}}) {
      for (const bool adds : {false, true}) {
        expect_norm<Element>(shape, adds, 0);
      }
    }
  });
  expect_all_launched("norm_of_block");
}

TEST_F(FusedNorm, KnowsTheNormsWithoutAMean) {
  in_every_type_and_order([]<typename Element>() {
    for (const NormKind kind : {NormKind::rms, NormKind::rms_plus_one}) {
      expect_norm<Element>({3, 576}, true, 0, kind);
      expect_norm<Element>({2, 33}, false, 0, kind);
    }
  });
}

TEST_F(FusedNorm, ReadsRowsThatAreNotAlignedElementByElement) {
  in_every_type_and_order([]<typename Element>() { expect_norm<Element>({3, 64}, true, sizeof(Element)); });
}

TEST_F(FusedNorm, LaunchesNothingWithoutRows) {
  const std::uint32_t before = machine().blocks_run();
  launch_fused_norm({.element = DeviceElement::float32, .rows = 0, .width = 64}, nullptr);
  EXPECT_EQ(machine().blocks_run(), before);
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
