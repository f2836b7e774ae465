// A gate's activation and multiplication on the CPU's device, against double precision.
#include "engine/kernels/elementwise/gate_rows.cuh"

#include "tests/cuda_on_cpu/kernel_test.h"

namespace decodelab::cuda_on_cpu {
namespace {

using GateRows = KernelTest;

double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh: return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::gelu_erf: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::relu: break;
  }
  return std::max(x, 0.0);
}

/// `skew`: bytes that rows begin behind a multiple of 16.
template <typename Element>
void expect_gate(std::int64_t rows, std::int64_t width, Activation activation, std::size_t skew = 0) {
  SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(width));
  Numbers numbers;
  const Memory<Element> up("up", numbers.next<Element>(rows * 2 * width, 6.0f), skew);
  const Memory<Element> out("out", rows * width, skew);
  launch_gate_rows({.element = OfElement<Element>::kType,
                    .rows = rows,
                    .width = width,
                    .activation = activation,
                    .up = up.data(),
                    .out = out.data()},
                   nullptr);
  Difference off;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      const std::int64_t gate = row * 2 * width + column;
      off.add(out.number(row * width + column), activated(up.number(gate), activation) * up.number(gate + width));
    }
  }
  EXPECT_LE(off.relative(), OfElement<Element>::kTolerance);
}

TEST_F(GateRows, EqualTheReferenceForEveryActivationAndAwkwardWidths) {
  in_every_type_and_order([]<typename Element>() {
    for (const Activation activation :
         {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu, Activation::relu}) {
      expect_gate<Element>(3, 64, activation);
      expect_gate<Element>(1, 5, activation);
      expect_gate<Element>(33, 37, activation);
    }
    expect_gate<Element>(2, 4096, Activation::silu);
  });
  expect_all_launched("gate_of_rows");
}

TEST_F(GateRows, ReadRowsThatAreNotAlignedElementByElement) {
  in_every_type_and_order([]<typename Element>() { expect_gate<Element>(3, 64, Activation::silu, sizeof(Element)); });
}

TEST_F(GateRows, LaunchNothingWithoutRows) {
  const std::uint32_t before = machine().blocks_run();
  launch_gate_rows({.element = DeviceElement::float32, .rows = 0, .width = 64}, nullptr);
  EXPECT_EQ(machine().blocks_run(), before);
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
