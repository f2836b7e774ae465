// One fault a kernel. Indices come from `count`, so that the compiler does not know them.
#include <cstring>

#include "engine/kernels/launch.cuh"
#include "tests/cuda_on_cpu/faulty_kernels.cuh"

namespace decodelab::cuda_on_cpu {
namespace {

using device::dynamic_shared;
using device::SharedRanges;

constexpr int kThreads = 64;
constexpr std::size_t kSharedBytes = 1024;
constexpr unsigned kAllLanes = 0xffffffffu;
const float kTable[4] = {1.0f, 2.0f, 3.0f, 4.0f};

/// Keeps a value that nothing else uses.
__device__ void keep(float value) { [[maybe_unused]] const volatile float kept = value; }

// --- barriers ---

__global__ void barrier_in_a_branch(float*, int count) {
  if (static_cast<int>(threadIdx.x) < count / 4) {
    __syncthreads();  // FAULT barrier_in_a_branch
  }
}
__global__ void barrier_after_a_return(float*, int count) {
  if (static_cast<int>(threadIdx.x) >= count - 7) {
    return;
  }
  __syncthreads();  // FAULT barrier_after_a_return
}
__global__ void two_barriers_for_one(float*, int count) {
  if (static_cast<int>(threadIdx.x) < count / 2) {
    __syncthreads();  // FAULT two_barriers_for_one
  } else {
    __syncthreads();
  }
}
__global__ void warp_barrier_in_a_branch(float*, int) {
  if (threadIdx.x % 32 < 16) {
    __syncwarp();  // FAULT warp_barrier_in_a_branch
  }
  __syncthreads();
}
__global__ void lane_outside_of_its_mask(float*, int) {
  __syncwarp(0x0000ffffu);  // FAULT lane_outside_of_its_mask
}
__global__ void value_of_a_lane_outside(float*, int) {
  if (threadIdx.x % 32 < 16) {
    keep(__shfl_sync(0x0000ffffu, 1.0f, 20));  // FAULT value_of_a_lane_outside
  }
}

// --- bounds ---

__global__ void read_behind_memory(float* memory, int count) {
  keep(memory[count + static_cast<int>(threadIdx.x)]);  // FAULT read_behind_memory
}
__global__ void write_before_memory(float* memory, int count) {
  memory[static_cast<int>(threadIdx.x) - count / 64] = 1.0f;  // FAULT write_before_memory
}
__global__ void read_null(float*, int count) {
  const float* null = reinterpret_cast<const float*>(static_cast<std::uintptr_t>(count / 100));
  keep(*null);  // FAULT read_null
}
__global__ void write_to_a_constant(float*, int count) {
  const_cast<float*>(kTable)[count / 32] = 1.0f;  // FAULT write_to_a_constant
}
__global__ void copy_behind_memory(float* memory, int count) {
  const float pair[2] = {1.0f, 2.0f};
  std::memcpy(memory + count - 1, pair, sizeof pair);  // FAULT copy_behind_memory
}
__global__ void index_into_the_next_range(float*, int count) {
  SharedRanges ranges;
  float* first = ranges.take<float>("first", count / 2);
  float* second = ranges.take<float>("second", count / 2);
  if (static_cast<int>(threadIdx.x) < count / 2) {
    second[threadIdx.x] = 1.0f;
  }
  first[threadIdx.x] = 1.0f;  // FAULT index_into_the_next_range
}
__global__ void index_before_a_range(float*, int count) {
  SharedRanges ranges;
  ranges.take<float>("first", count);
  float* second = ranges.take<float>("second", count);
  second[static_cast<int>(threadIdx.x) - count / 64] = 1.0f;  // FAULT index_before_a_range
}
__global__ void behind_dynamic_shared_memory(float*, int count) {
  dynamic_shared<float>()[4 * count + static_cast<int>(threadIdx.x)] = 1.0f;  // FAULT behind_dynamic_shared_memory
}
__global__ void range_behind_shared_memory(float*, int count) {
  SharedRanges ranges;
  keep(*ranges.take<float>("too long", 5 * count));  // FAULT range_behind_shared_memory
}
__global__ void threads_that_take_other_ranges(float*, int) {
  SharedRanges ranges;
  ranges.take<float>("range", static_cast<int>(threadIdx.x) + 1);  // FAULT threads_that_take_other_ranges
}
__global__ void index_behind_static_shared_memory(float*, int count) {
  __shared__ float scratch[32];
  scratch[0] = 1.0f;
  keep(scratch[0]);
  scratch[static_cast<int>(threadIdx.x) + count / 2] = 1.0f;  // FAULT index_behind_static_shared_memory
}
__device__ void write_through(float* to, int index) {
  to[index] = 1.0f;  // FAULT pointer_behind_static_shared_memory
}
__global__ void pointer_behind_static_shared_memory(float*, int count) {
  __shared__ float scratch[32];
  write_through(scratch, static_cast<int>(threadIdx.x) + count / 2);
}
__global__ void index_behind_a_local_array(float*, int count) {
  float kept[4] = {};
  kept[static_cast<int>(threadIdx.x) + count / 16] = 1.0f;  // FAULT index_behind_a_local_array
  keep(kept[count / 32]);
}

// --- alignment ---

__global__ void misaligned_vector_of_memory(float* memory, int count) {
  const float4 read = *reinterpret_cast<const float4*>(memory + count / 64);  // FAULT misaligned_vector_of_memory
  keep(read.x + read.w);
}
__global__ void misaligned_vector_of_a_range(float*, int count) {
  SharedRanges ranges;
  ranges.take<float>("odd", count / 64);
  auto* vectors = ranges.take<float4>("vectors", 4);
  vectors[0] = make_float4(1.0f, 2.0f, 3.0f, 4.0f);  // FAULT misaligned_vector_of_a_range
}

// --- what nobody wrote ---

__global__ void read_of_unwritten_memory(float* memory, int count) {
  keep(memory[count - 1]);  // FAULT read_of_unwritten_memory
}
__global__ void read_of_unwritten_shared_memory(float*, int) {
  keep(dynamic_shared<float>()[threadIdx.x]);  // FAULT read_of_unwritten_shared_memory
}
__global__ void read_of_another_blocks_shared_memory(float*, int) {
  float* shared = dynamic_shared<float>();
  if (blockIdx.x == 0) {
    shared[threadIdx.x] = 1.0f;
  }
  __syncthreads();
  keep(shared[threadIdx.x]);  // FAULT read_of_another_blocks_shared_memory
}

// --- races ---

/// Returns shared memory with a number for each thread, written before a barrier.
__device__ float* filled_shared_memory() {
  float* shared = dynamic_shared<float>();
  shared[threadIdx.x] = 0.0f;
  __syncthreads();
  return shared;
}

__global__ void read_without_a_barrier(float*, int) {
  float* shared = filled_shared_memory();
  shared[threadIdx.x] = 1.0f;
  keep(shared[(threadIdx.x + 32) % 64]);  // FAULT read_without_a_barrier
}
__global__ void overwritten_before_all_have_read(float*, int) {
  __shared__ float shared[kThreads];
  shared[threadIdx.x] = 1.0f;
  __syncthreads();
  const float read = shared[(threadIdx.x + 32) % 64];
  shared[threadIdx.x] = read;  // FAULT overwritten_before_all_have_read
}
__global__ void all_write_one_element(float*, int) {
  dynamic_shared<float>()[0] = static_cast<float>(threadIdx.x);  // FAULT all_write_one_element
}
__global__ void lanes_without_a_warp_barrier(float*, int) {
  float* shared = filled_shared_memory();
  shared[threadIdx.x] = 1.0f;
  keep(shared[threadIdx.x ^ 1]);  // FAULT lanes_without_a_warp_barrier
}
__global__ void warp_barrier_of_another_half(float*, int) {
  float* shared = filled_shared_memory();
  shared[threadIdx.x] = 1.0f;
  __syncwarp(threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u);
  keep(shared[threadIdx.x ^ 16]);  // FAULT warp_barrier_of_another_half
}
__global__ void shuffle_in_place_of_a_barrier(float*, int) {
  float* shared = filled_shared_memory();
  shared[threadIdx.x] = 1.0f;
  keep(__shfl_xor_sync(kAllLanes, 1.0f, 1));
  keep(shared[threadIdx.x ^ 1]);  // FAULT shuffle_in_place_of_a_barrier
}
__global__ void two_blocks_write_one_element(float* memory, int) {
  if (threadIdx.x == 0) {
    memory[0] = static_cast<float>(blockIdx.x);  // FAULT two_blocks_write_one_element
  }
}
__global__ void block_overwrites_what_another_reads(float* memory, int) {
  keep(memory[threadIdx.x % 8]);
  if (blockIdx.x == 1) {
    memory[threadIdx.x] = 1.0f;  // FAULT block_overwrites_what_another_reads
  }
}
__global__ void plain_read_beside_atomics(float* memory, int count) {
  atomicAdd(memory, 1.0f);
  if (static_cast<int>(threadIdx.x) == count / 2) {
    keep(memory[0]);  // FAULT plain_read_beside_atomics
  }
}

template <void (*kKernel)(float*, int), unsigned kBlocks = 1>
void run(float* memory, int count) {
  launch_kernel(kKernel, kBlocks, kThreads, kSharedBytes, nullptr, memory, count);
}

#define FAULTY(name, says) {#name, says, run<name>}
#define FAULTY_IN_TWO_BLOCKS(name, says) {#name, says, run<name, 2>}

constexpr FaultyKernel kFaultyKernels[] = {
    FAULTY(barrier_in_a_branch, "16 of 64 threads (thread (0, 0, 0) first) wait in __syncthreads"),
    FAULTY(barrier_after_a_return, "7 of 64 threads (thread (57, 0, 0) first) have left the kernel"),
    FAULTY(two_barriers_for_one, "32 of 64 threads (thread (32, 0, 0) first) wait in __syncthreads"),
    FAULTY(warp_barrier_in_a_branch, "32 of 64 threads (thread (0, 0, 0) first) wait for their warp"),
    FAULTY(lane_outside_of_its_mask, "is not in its own mask 0x0000ffff"),
    FAULTY(value_of_a_lane_outside, "has a value from lane 20, which takes no part"),
    FAULTY(read_behind_memory, "read of 4 bytes outside of memory (at byte 256 of 256)"),
    FAULTY(write_before_memory, "write of 4 bytes outside of memory (at byte -4 of 256)"),
    FAULTY(read_null, "read of 4 bytes outside of all memory that the kernel was given"),
    FAULTY(write_to_a_constant, "write of 4 bytes outside of all memory that the kernel was given"),
    FAULTY(copy_behind_memory, "write of 8 bytes outside of memory (at byte 252 of 256)"),
    FAULTY(index_into_the_next_range, "write of 4 bytes outside of first (at byte 128 of 128)"),
    FAULTY(index_before_a_range, "write of 4 bytes outside of second (at byte -4 of 256)"),
    FAULTY(behind_dynamic_shared_memory, "outside of dynamic shared memory (at byte 1024 of 1024)"),
    FAULTY(range_behind_shared_memory,
           "range 'too long' ends at byte 1280 of dynamic shared memory, and the launch asked for 1024"),
    FAULTY(threads_that_take_other_ranges, "dynamic shared memory from byte 0 is 'range' of 4 bytes for one thread"),
    FAULTY(index_behind_static_shared_memory, "index 32 is outside of 'float [32]'"),
    FAULTY(pointer_behind_static_shared_memory,
           "outside of static pointer_behind_static_shared_memory::scratch (at byte 128 of 128)"),
    FAULTY(index_behind_a_local_array, "index 4 is outside of 'float [4]'"),
    FAULTY(misaligned_vector_of_memory,
           "misaligned access: 'const struct float4' lies at multiples of 16 bytes, and this address is 4 past one"),
    FAULTY(misaligned_vector_of_a_range,
           "misaligned access: 'struct float4' lies at multiples of 16 bytes, and this address is 4 past one"),
    FAULTY(read_of_unwritten_memory, "read of memory, byte 252, which nobody has written"),
    FAULTY(read_of_unwritten_shared_memory, "read of dynamic shared memory, byte 0, which nobody has written"),
    FAULTY_IN_TWO_BLOCKS(read_of_another_blocks_shared_memory, "which nobody has written"),
    FAULTY(read_without_a_barrier, "race on dynamic shared memory"),
    FAULTY(overwritten_before_all_have_read, "race on static overwritten_before_all_have_read::shared"),
    FAULTY(all_write_one_element, "race on dynamic shared memory, byte 0: write"),
    FAULTY(lanes_without_a_warp_barrier, "race on dynamic shared memory"),
    FAULTY(warp_barrier_of_another_half, "race on dynamic shared memory"),
    FAULTY(shuffle_in_place_of_a_barrier, "race on dynamic shared memory"),
    FAULTY_IN_TWO_BLOCKS(two_blocks_write_one_element, "of another block, with no barrier between"),
    FAULTY_IN_TWO_BLOCKS(block_overwrites_what_another_reads, "race on memory, byte 0: write"),
    FAULTY(plain_read_beside_atomics, "race on memory, byte 0: atomic access"),
};

}  // namespace

std::span<const FaultyKernel> faulty_kernels() { return kFaultyKernels; }

}  // namespace decodelab::cuda_on_cpu
