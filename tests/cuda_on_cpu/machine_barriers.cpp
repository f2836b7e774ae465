// Barriers of blocks and warps, and what lanes hand over to each other.
#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "tests/cuda_on_cpu/machine.h"

namespace decodelab::cuda_on_cpu {
namespace {

bool same(const SourceLine& a, const SourceLine& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}
std::string name_of(const SourceLine& place) { return fmt::format("{}:{}", place.file, place.line); }

}  // namespace

void Machine::block_barrier(SourceLine place) {
  Thread& me = threads_[fibers_.current()];
  me.state = State::in_block_barrier;
  me.place = place;
  // Threads that wait at different places wait for ever, which run_block() finds.
  if (++in_block_barrier_ == thread_count_ &&
      std::all_of(threads_.begin(), threads_.end(), [&](const Thread& other) { return same(other.place, place); })) {
    complete_block_barrier();
  }
  fibers_.pause();
}

void Machine::complete_block_barrier() {
  for (Thread& thread : threads_) {
    thread.state = State::ready;
  }
  in_block_barrier_ = 0;
  ++now_.epoch;
  lane_reads_.clear();
}

void Machine::report_stuck() {
  std::map<std::string, std::vector<unsigned>> groups;
  for (unsigned index = 0; index < thread_count_; ++index) {
    const Thread& thread = threads_[index];
    switch (thread.state) {
      case State::ended: groups["have left the kernel"].push_back(index); break;
      case State::in_block_barrier: groups["wait in __syncthreads at " + name_of(thread.place)].push_back(index); break;
      default: groups["wait for their warp at " + name_of(thread.place)].push_back(index); break;
    }
  }
  std::string sentence = "not all threads reach a barrier";
  for (const auto& [where, threads] : groups) {
    sentence += fmt::format("; {} of {} threads ({} first) {}", threads.size(), thread_count_,
                            name_of_thread(threads.front()), where);
  }
  report(sentence);
}

/// Puts what each of these lanes did before what each of them does next.
void Machine::order_lanes(unsigned first, std::uint32_t lanes) {
  LaneClocks latest{};
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const LaneClocks& seen = threads_[first + static_cast<unsigned>(std::countr_zero(rest))].seen;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      latest[lane] = std::max(latest[lane], seen[lane]);
    }
  }
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    threads_[first + lane].seen = latest;
    ++threads_[first + lane].seen[lane];
  }
}

/// Lets the lanes of a mask go on where all of them that have not ended wait at the same place with the same mask.
void Machine::try_to_meet(unsigned thread) {
  const Thread& me = threads_[thread];
  const unsigned first = thread / kWarpLanes * kWarpLanes;
  std::uint32_t lanes = 0;
  std::uint32_t votes = 0;
  // From the last lane on: where threads run in ascending order it is the one that is missing.
  for (unsigned lane = std::min(kWarpLanes, thread_count_ - first); lane-- > 0;) {
    const Thread& other = threads_[first + lane];
    if ((me.mask >> lane & 1u) == 0 || other.state == State::ended) {
      continue;
    }
    if (other.state != State::in_warp || other.mask != me.mask || !same(other.place, me.place)) {
      return;
    }
    lanes |= 1u << lane;
    votes |= (other.value != 0 ? 1u : 0u) << lane;
  }
  const bool is_barrier = me.is_barrier;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    Thread& other = threads_[first + lane];
    if ((lanes >> other.source_lane & 1u) == 0) {
      report(fmt::format("lane {} has a value from lane {}, which takes no part, at {}", lane, other.source_lane,
                         name_of(other.place)));
      other.received = {.value = 0, .votes = votes};
    } else {
      other.received = {.value = threads_[first + other.source_lane].value, .votes = votes};
    }
    other.state = State::ready;
  }
  if (is_barrier) {
    order_lanes(first, lanes);
  }
}

Exchanged Machine::meet(unsigned mask, unsigned source_lane, std::uint64_t value, bool is_barrier, SourceLine place) {
  const unsigned thread = fibers_.current();
  if ((mask >> thread % kWarpLanes & 1u) == 0) {
    report_and_stop(
        fmt::format("{} is not in its own mask {:#010x} at {}", name_of_thread(thread), mask, name_of(place)));
  }
  Thread& me = threads_[thread];
  me.state = State::in_warp;
  me.place = place;
  me.mask = mask;
  me.source_lane = source_lane;
  me.value = value;
  me.is_barrier = is_barrier;
  try_to_meet(thread);
  fibers_.pause();
  return me.received;
}

}  // namespace decodelab::cuda_on_cpu
