// The generator of synthetic weights on the CPU's device: the bits that a plain loop makes.
#include "engine/kernels/elementwise/random_fill.cuh"

#include "engine/kernels/philox.h"
#include "tests/cuda_on_cpu/kernel_test.h"

namespace decodelab::cuda_on_cpu {
namespace {

using RandomFill = KernelTest;

TEST_F(RandomFill, MakesTheBitsOfThePlainLoopAndNothingBehindThem) {
  constexpr std::uint64_t kSeed = 0x123456789abcdef;
  constexpr std::uint64_t kStream = 77;
  constexpr float kMean = 0.25f;
  constexpr float kHalfWidth = 0.5f;
  for (const std::uint64_t order : {0, 1}) {
    machine().set_order(order);
    for (const std::int64_t count : {0, 1, 3, 4, 257, 1024, 1025, 5003}) {
      const Memory<float> out("out", count);
      launch_random_fill(out.data(), count, kSeed, kStream, kMean, kHalfWidth, nullptr);
      for (std::int64_t index = 0; index < count; ++index) {
        const PhiloxWords words = philox4x32(philox_counter(static_cast<std::uint64_t>(index / 4), kStream), kSeed);
        ASSERT_EQ(out[index], uniform_float(words.word[index % 4], kMean, kHalfWidth)) << index << " of " << count;
      }
      expect_no_faults();
    }
  }
  expect_all_launched("fill");
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
