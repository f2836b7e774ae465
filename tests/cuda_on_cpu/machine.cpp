// Launches, blocks, and the order of threads.
#include "tests/cuda_on_cpu/machine.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tests/cuda_on_cpu/thread_numbers.h"

namespace decodelab::cuda_on_cpu {
namespace {

// The limits of compute capability 8.0, the oldest that the kernels are compiled for.
constexpr std::size_t kMostSharedBytes = 163 * 1024;
constexpr std::size_t kSharedBytesUnasked = 48 * 1024;
constexpr std::uint64_t kMostThreads = 1024;
constexpr unsigned kMostBlockDepth = 64;
constexpr unsigned kMostBlocksAcross = 65535;
/// Each further fault of a launch would only repeat the first ones.
constexpr std::size_t kMostFaults = 16;

std::uint64_t count_of(dim3 size) { return std::uint64_t{size.x} * size.y * size.z; }

}  // namespace

Machine& machine() {
  static Machine the_machine;
  return the_machine;
}

Machine::Machine() = default;

std::vector<std::string> Machine::take_faults() {
  stopped_ = false;
  reported_.clear();
  return std::exchange(faults_, {});
}

std::vector<std::string> Machine::never_launched(const std::string& name) const {
  std::vector<std::string> kernels = symbols_.functions(name);
  std::erase_if(kernels, [&](const std::string& kernel) { return launched_.contains(kernel); });
  return kernels;
}

uint3 Machine::index_of(unsigned thread) const {
  return {thread % block_size_.x, thread / block_size_.x % block_size_.y, thread / block_size_.x / block_size_.y};
}

std::string Machine::name_of_thread(unsigned thread) const {
  const uint3 index = index_of(thread);
  return fmt::format("thread ({}, {}, {})", index.x, index.y, index.z);
}

void Machine::report(const std::string& sentence) {
  if (faults_.size() < kMostFaults) {
    faults_.push_back(fmt::format("{}: {} [block ({}, {}, {}), order {}]", kernel_name_, sentence, block_index_.x,
                                  block_index_.y, block_index_.z, order_seed_));
  }
}

void Machine::report_and_stop(const std::string& sentence) {
  report(sentence);
  stopped_ = true;
  for (;;) {
    fibers_.pause();  // Nobody resumes it.
  }
}

cudaError_t Machine::allow_shared(const void* kernel, int bytes) {
  if (bytes < 0 || static_cast<std::size_t>(bytes) > kMostSharedBytes) {
    return cudaErrorInvalidValue;
  }
  allowed_shared_[kernel] = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}

bool Machine::refuses_launch(std::size_t shared_bytes) {
  const auto allowed = allowed_shared_.find(kernel_);
  const std::size_t most_shared = allowed != allowed_shared_.end() ? allowed->second : kSharedBytesUnasked;
  if (count_of(block_size_) == 0 || count_of(block_size_) > kMostThreads || block_size_.z > kMostBlockDepth ||
      count_of(grid_size_) == 0 || grid_size_.y > kMostBlocksAcross || grid_size_.z > kMostBlocksAcross) {
    report(fmt::format("a GPU would refuse this launch: a grid of {} x {} x {} blocks of {} x {} x {} threads",
                       grid_size_.x, grid_size_.y, grid_size_.z, block_size_.x, block_size_.y, block_size_.z));
    return true;
  }
  if (shared_bytes > most_shared) {
    report(
        fmt::format("a GPU would refuse this launch: it asks for {} bytes of shared memory, and {} are allowed "
                    "(cudaFuncSetAttribute)",
                    shared_bytes, most_shared));
    return true;
  }
  return false;
}

void Machine::launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, void (*call)(void*),
                     void* context) {
  if (stopped_) {
    return;  // As after an error of a GPU.
  }
  kernel_ = kernel;
  kernel_name_ = symbols_.function_at(kernel);
  launched_.insert(kernel_name_);
  grid_size_ = grid;
  block_size_ = block;
  block_index_ = {0, 0, 0};
  gridDim = {grid.x, grid.y, grid.z};
  blockDim = {block.x, block.y, block.z};
  if (refuses_launch(shared_bytes)) {
    return;
  }
  shared_bytes_ = shared_bytes;
  thread_count_ = static_cast<unsigned>(count_of(block));
  now_.first_block = last_block_ + 1;
  std::mt19937_64 random(order_seed_);
  std::vector<unsigned> blocks(count_of(grid));
  std::iota(blocks.begin(), blocks.end(), 0u);
  if (order_seed_ != 0) {
    std::shuffle(blocks.begin(), blocks.end(), random);
  }
  running_ = true;
  for (const unsigned index : blocks) {
    block_index_ = {index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y};
    blockIdx = block_index_;
    fibers_.start(thread_count_, call, context);
    run_block(random);
    if (stopped_) {
      break;
    }
  }
  running_ = false;
  for (const auto& [offset, region] : std::exchange(shared_ranges_, {})) {
    regions_.release(region->begin);
  }
}

void Machine::run_block(std::mt19937_64& random) {
  now_.block = ++last_block_;
  now_.epoch = 0;
  in_block_barrier_ = 0;
  lane_reads_.clear();
  threads_.assign(thread_count_, {});
  for (unsigned thread = 0; thread < thread_count_; ++thread) {
    threads_[thread].seen[thread % kWarpLanes] = 1;
  }
  std::vector<unsigned> order(thread_count_);
  std::iota(order.begin(), order.end(), 0u);
  for (;;) {
    if (order_seed_ != 0) {
      std::shuffle(order.begin(), order.end(), random);
    }
    bool any_ran = false;
    for (const unsigned thread : order) {
      while (threads_[thread].state == State::ready && !stopped_) {
        any_ran = true;
        run_thread(thread);
      }
    }
    const bool all_ended =
        std::all_of(threads_.begin(), threads_.end(), [](const Thread& it) { return it.state == State::ended; });
    if (all_ended || stopped_) {
      return;
    }
    if (!any_ran) {
      report_stuck();
      stopped_ = true;
      return;
    }
  }
}

void Machine::run_thread(unsigned thread) {
  now_.thread = static_cast<std::uint16_t>(thread);
  now_.seen = &threads_[thread].seen;
  threadIdx = index_of(thread);
  if (!fibers_.resume(thread)) {
    return;
  }
  threads_[thread].state = State::ended;
  // Lanes that wait for this one wait no longer: CUDA asks only those that have not ended.
  const unsigned first = thread / kWarpLanes * kWarpLanes;
  for (unsigned other = first; other < std::min(first + kWarpLanes, thread_count_); ++other) {
    if (threads_[other].state == State::in_warp) {
      try_to_meet(other);
    }
  }
}

}  // namespace decodelab::cuda_on_cpu
