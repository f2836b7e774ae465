// Runs a rank beside the first one.
#include "engine/ranks/rank_thread.h"

#include <utility>

#include <fmt/format.h>

namespace decodelab {

RankThread::RankThread(const RankMemory& first, std::int64_t rank, std::function<void(RankMemory&)> run)
    : memory_(first, rank), thread_([this, run = std::move(run)] {
        try {
          run(memory_);
        } catch (const std::exception& error) {
          memory_.fail(fmt::format("rank {} of {}: {}", memory_.rank(), memory_.ranks(), error.what()));
        }
      }) {}

}  // namespace decodelab
