// Ranks in threads of a test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "engine/ranks/rank_memory.h"

namespace decodelab::testing {

/// Runs `rank` with the memory of each rank in a thread of its own.
inline void in_rank_threads(std::int64_t ranks, const std::function<void(RankMemory&)>& rank) {
  RankMemory first(ranks);
  std::vector<std::unique_ptr<RankMemory>> memories;
  std::vector<std::thread> threads;
  for (std::int64_t number = 1; number < ranks; ++number) {
    memories.push_back(std::make_unique<RankMemory>(first, number));
    threads.emplace_back([&rank, memory = memories.back().get()] { rank(*memory); });
  }
  rank(first);
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace decodelab::testing
