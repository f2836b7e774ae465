// A rank in a thread of the first one's process.
#pragma once

#include <functional>
#include <thread>

#include "engine/ranks/communicator.h"
#include "engine/ranks/rank_memory.h"

namespace decodelab {

class RankThread final : public RankElsewhere {
 public:
  /// Starts `run` with the rank's side of the memory. What it throws is told to all ranks. The thread ends when the
  /// first rank says so, or has failed: one of them comes before the destructor, which waits for it.
  RankThread(const RankMemory& first, std::int64_t rank, std::function<void(RankMemory&)> run);
  ~RankThread() override { thread_.join(); }
  RankThread(const RankThread&) = delete;
  RankThread& operator=(const RankThread&) = delete;

  /// Does nothing: a thread that fails says so.
  void look() override {}

 private:
  RankMemory memory_;
  std::thread thread_;
};

}  // namespace decodelab
