// Runs the blocks of a launch one after another, their threads as fibers, and checks every access of their code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <cuda_runtime.h>

#include "tests/cuda_on_cpu/fibers.h"
#include "tests/cuda_on_cpu/happens_before.h"
#include "tests/cuda_on_cpu/program_symbols.h"
#include "tests/cuda_on_cpu/regions.h"

namespace decodelab::cuda_on_cpu {

/// Where a barrier or a shuffle stands in the source.
struct SourceLine {
  const char* file = "";
  int line = 0;
};

/// What a lane has from its warp after all have met.
struct Exchanged {
  std::uint64_t value = 0;  ///< Of the lane that was asked for.
  std::uint32_t votes = 0;  ///< The lanes whose values are not zero.
};

/// One device. Its faults are sentences with the kernel, the place in the source, the thread and the block.
class Machine final {
 public:
  Machine();

  // --- for tests ---
  /// Another order of blocks and threads for each seed; 0 is ascending.
  void set_order(std::uint64_t seed) { order_seed_ = seed; }
  /// Returns the faults since the last call. A fault that would crash ends its launch, and no kernel runs until this is
  /// called.
  std::vector<std::string> take_faults();
  /// What of a kernel, or of a template of kernels, this program has and has never launched.
  std::vector<std::string> never_launched(const std::string& name) const;
  std::uint32_t blocks_run() const { return last_block_ - kHostBlock; }
  Regions& regions() { return regions_; }

  // --- for the words of CUDA ---
  void launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, void (*call)(void*), void* context);
  cudaError_t allow_shared(const void* kernel, int bytes);
  unsigned lane() const { return fibers_.current() % kWarpLanes; }
  /// Returns a range of dynamic shared memory. All threads of a block have the same one at the same offset.
  void* shared_range(const char* name, std::size_t offset, std::size_t bytes, std::size_t element, SourceLine place);
  std::size_t shared_bytes() const { return shared_bytes_; }
  void block_barrier(SourceLine place);
  /// Waits for the lanes of `mask` and hands over values. `is_barrier`: also puts their accesses before what follows.
  Exchanged meet(unsigned mask, unsigned source_lane, std::uint64_t value, bool is_barrier, SourceLine place);

  // --- for the calls that the compiler makes ---
  /// Returns where the access may be made; else it ends the launch. `is_plain`: `bytes` are a power of two and must be
  /// aligned.
  void check(const void* address, std::size_t bytes, AccessKind kind, bool is_plain, const void* code);
  /// Reports what the compiler has found in a line of a kernel, and ends the launch.
  void fault_in_line(const std::string& what, SourceLine place);

 private:
  enum class State : std::uint8_t { ready, in_block_barrier, in_warp, ended };
  struct Thread {
    State state = State::ready;
    SourceLine place;
    unsigned mask = 0;
    unsigned source_lane = 0;
    std::uint64_t value = 0;
    Exchanged received;
    bool is_barrier = false;
    LaneClocks seen{};
  };

  bool refuses_launch(std::size_t shared_bytes);
  void run_block(std::mt19937_64& random);
  void run_thread(unsigned thread);
  void report_stuck();
  void complete_block_barrier();
  void try_to_meet(unsigned thread);
  void order_lanes(unsigned first, std::uint32_t lanes);

  Region* region_of(const void* address, std::size_t bytes);
  bool enter_block(Region& region) const;
  void report_access(const Region& region, std::size_t offset, AccessKind kind, std::uint32_t code,
                     const Finding& finding);
  void report(const std::string& sentence);
  /// Reports, drops the launch and does not return.
  [[noreturn]] void report_and_stop(const std::string& sentence);
  uint3 index_of(unsigned thread) const;
  std::string name_of_thread(unsigned thread) const;

  ProgramSymbols symbols_;
  Regions regions_;
  Fibers fibers_;
  std::vector<Thread> threads_;
  LaneReads lane_reads_;
  Now now_;
  std::map<std::size_t, Region*> shared_ranges_;  ///< Of this launch, by offset.
  std::map<const void*, std::size_t> allowed_shared_;
  std::set<std::string> launched_;
  std::vector<std::string> faults_;
  std::set<std::tuple<Conflict, AccessKind, std::uint32_t, std::uint32_t>>
      reported_;  ///< By the places of both accesses.
  std::string kernel_name_;
  const void* kernel_ = nullptr;
  std::uint64_t order_seed_ = 0;
  std::size_t shared_bytes_ = 0;
  dim3 grid_size_;
  dim3 block_size_;
  uint3 block_index_{0, 0, 0};
  std::uint32_t last_block_ = kHostBlock;
  unsigned thread_count_ = 0;
  unsigned in_block_barrier_ = 0;
  bool running_ = false;
  bool stopped_ = false;
};

/// The one device of the process: the compiler's calls carry no pointer to it.
Machine& machine();

}  // namespace decodelab::cuda_on_cpu
