// The words of CUDA do what the programming guide says: indices, shuffles, votes, atomics, shared memory, and refused
// launches.
#include <algorithm>
#include <numeric>

#include "tests/cuda_on_cpu/cuda_on_cpu.h"
#include "tests/cuda_on_cpu/kernel_test.h"
#include "tests/cuda_on_cpu/word_kernels.cuh"

namespace decodelab::cuda_on_cpu {
namespace {

using Words = KernelTest;
constexpr std::uint64_t kOrders = 4;

TEST_F(Words, LanesHaveEachOthersValuesAtAnyWidth) {
  for (std::uint64_t order = 0; order < kOrders; ++order) {
    machine().set_order(order);
    const Memory<int> from_lane_5("from_lane_5", kLanes);
    const Memory<double> one_up("one_up", kLanes);
    const Memory<unsigned long long> three_down_of_8("three_down_of_8", kLanes);
    const Memory<float> swapped_of_16("swapped_of_16", kLanes);
    const Memory<unsigned> odd_lanes("odd_lanes", kLanes);
    const Memory<int> any_and_all("any_and_all", kLanes);
    launch_warp_words({.from_lane_5 = from_lane_5.data(),
                       .one_up = one_up.data(),
                       .three_down_of_8 = three_down_of_8.data(),
                       .swapped_of_16 = swapped_of_16.data(),
                       .odd_lanes = odd_lanes.data(),
                       .any_and_all = any_and_all.data()});
    for (int lane = 0; lane < kLanes; ++lane) {
      EXPECT_EQ(from_lane_5[lane], 105);
      EXPECT_EQ(one_up[lane], 0.5 + std::max(lane - 1, 0));
      EXPECT_EQ(three_down_of_8[lane], (1ull << 40) + static_cast<unsigned>(lane % 8 < 5 ? lane + 3 : lane));
      EXPECT_EQ(swapped_of_16[lane], static_cast<float>(lane ^ 8));
      EXPECT_EQ(odd_lanes[lane], 0xaaaaaaaau);
      EXPECT_EQ(any_and_all[lane], 1 | 4);
    }
    expect_no_faults();
  }
}

TEST_F(Words, IndicesCountBlocksAndThreadsInThreeDimensions) {
  constexpr int kBlocks = 2 * 3 * 2;
  constexpr int kThreads = 4 * 2 * 3;
  for (std::uint64_t order = 0; order < kOrders; ++order) {
    machine().set_order(order);
    const Memory<int> out("out", kBlocks * kThreads);
    launch_indices(out.data());
    for (int at = 0; at < kBlocks * kThreads; ++at) {
      EXPECT_EQ(out[at], at / kThreads * 1000 + at % kThreads);
    }
  }
}

TEST_F(Words, AtomicsOfManyBlocksLoseNothing) {
  constexpr int kCount = 500;
  std::vector<int> numbers(kCount);
  for (int at = 0; at < kCount; ++at) {
    numbers[static_cast<std::size_t>(at)] = 7 + at * 37 % 501;
  }
  for (std::uint64_t order = 0; order < kOrders; ++order) {
    machine().set_order(order);
    const Memory<int> input("numbers", numbers);
    const Memory<int> counts("counts", std::vector<int>(kBins, 0));
    const Memory<int> largest("largest", std::vector<int>{0});
    const Memory<int> least("least", std::vector<int>{100000});
    const Memory<int> tickets("tickets", std::vector<int>(kCount, 0));
    launch_atomics(input.data(), kCount, counts.data(), largest.data(), least.data(), tickets.data());
    for (int bin = 0; bin < kBins; ++bin) {
      EXPECT_EQ(counts[bin], std::count_if(numbers.begin(), numbers.end(), [&](int it) { return it % kBins == bin; }));
    }
    EXPECT_EQ(largest[0], *std::max_element(numbers.begin(), numbers.end()));
    EXPECT_EQ(least[0], *std::min_element(numbers.begin(), numbers.end()));
    EXPECT_EQ(std::accumulate(tickets.data(), tickets.data() + kCount, 0), kCount);
  }
}

TEST_F(Words, SharedMemoryIsStaticOrInRangesAndOrderedByBarriersOfHalfAWarp) {
  std::vector<float> numbers(64);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  for (std::uint64_t order = 0; order < kOrders; ++order) {
    machine().set_order(order);
    const Memory<float> from("from", numbers);
    const Memory<float> to("to", 64);
    launch_shared_words(from.data(), to.data());
    for (int at = 0; at < 64; ++at) {
      EXPECT_EQ(to[at], static_cast<float>(63 - at));
    }
    expect_no_faults();
  }
}

std::vector<int> order_of_threads(std::uint64_t order) {
  constexpr int kThreads = 64;
  machine().set_order(order);
  const Memory<int> next("next", std::vector<int>{0});
  const Memory<int> tickets("tickets", kThreads);
  launch_ticket_order(next.data(), tickets.data(), kThreads);
  return {tickets.data(), tickets.data() + kThreads};
}

TEST_F(Words, ThreadsRunInTheOrderOfTheSeed) {
  const std::vector<int> ascending = order_of_threads(0);
  EXPECT_TRUE(std::is_sorted(ascending.begin(), ascending.end()));
  EXPECT_NE(order_of_threads(1), ascending);
  EXPECT_EQ(order_of_threads(1), order_of_threads(1));
  EXPECT_NE(order_of_threads(1), order_of_threads(2));
}

TEST_F(Words, HalvesAndBfloat16RoundToTheNearestEven) {
  EXPECT_EQ(__float2half_rn(1.0f).bits, 0x3c00);
  EXPECT_EQ(__float2half_rn(1.0f + 1.0f / 2048).bits, 0x3c00);
  EXPECT_EQ(__float2half_rn(1.0f + 3.0f / 2048).bits, 0x3c02);
  EXPECT_EQ(__float2half_rn(70000.0f).bits, 0x7c00);
  EXPECT_EQ(__half2float({0x0001}), std::ldexp(1.0f, -24));
  EXPECT_EQ(__float2bfloat16_rn(1.0f).bits, 0x3f80);
  EXPECT_EQ(__float2bfloat16_rn(1.0f + 1.0f / 256).bits, 0x3f80);
  EXPECT_EQ(__float2bfloat16_rn(1.0f + 3.0f / 256).bits, 0x3f82);
  EXPECT_EQ(__bfloat162float({0xc040}), -3.0f);
  EXPECT_TRUE(std::isnan(__bfloat162float(__float2bfloat16_rn(std::nanf("")))));
}

__global__ void empty_kernel(int) {}

/// Returns the one fault of an empty launch.
std::string fault_of_launch(dim3 grid, dim3 block, std::size_t shared_bytes) {
  launch_kernel(empty_kernel, grid, block, shared_bytes, nullptr, 1);
  const std::vector<std::string> faults = machine().take_faults();
  return faults.size() == 1 ? faults.front() : "";
}

TEST_F(Words, LaunchesThatAGpuRefusesAreFaults) {
  EXPECT_NE(fault_of_launch(1, 1025, 0).find("of 1025 x 1 x 1 threads"), std::string::npos);
  EXPECT_NE(fault_of_launch(0, 32, 0).find("a grid of 0 x 1 x 1 blocks"), std::string::npos);
  EXPECT_NE(fault_of_launch(dim3(1, 65536), 32, 0).find("a grid of 1 x 65536 x 1"), std::string::npos);
  EXPECT_NE(fault_of_launch(1, 32, 49153).find("asks for 49153 bytes of shared memory, and 49152 are allowed"),
            std::string::npos);
  const auto* const kernel = reinterpret_cast<const void*>(empty_kernel);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024), cudaSuccess);
  EXPECT_EQ(fault_of_launch(1, 32, 49153), "");
  EXPECT_EQ(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 164 * 1024),
            cudaErrorInvalidValue);
}

TEST_F(Words, NothingRunsAfterAFaultThatEndsALaunchUntilItIsTaken) {
  launch_indices(nullptr);
  const std::uint32_t blocks = machine().blocks_run();
  launch_kernel(empty_kernel, 1, 32, 0, nullptr, 1);
  EXPECT_EQ(machine().blocks_run(), blocks);
  EXPECT_EQ(machine().take_faults().size(), 1u);
  launch_kernel(empty_kernel, 1, 32, 0, nullptr, 1);
  EXPECT_EQ(machine().blocks_run(), blocks + 1);
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
