// Serves the requests of a cell of phase `batching` with one engine, and says when each token came.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/measure/engine_worker.h"
#include "bench/measure/request_times.h"
#include "bench/plan/batch_work.h"
#include "engine/batching.h"

namespace decodelab {

/// Returns the requests of a cell under these settings.
BatchWork batch_work(const CellInput& input, const CellRecord& cell, std::int64_t vocabulary_size);

/// What a time of arrival is counted in.
enum class ArrivalClock : std::uint8_t {
  seconds,       ///< Of the request rate.
  decode_steps,  ///< Of a batch that is just busy, so that what is counted and what is chosen repeats exactly.
};

/// What came of serving all requests once. Times are in nanoseconds.
struct ServedRequests {
  std::int64_t wall_ns = 0;
  std::vector<RequestTimes> times;                ///< [request]
  std::vector<std::vector<std::int64_t>> tokens;  ///< [request]
  BatchCounts counts;
};

/// Says how requests are served.
struct ServeOptions {
  std::int64_t max_rows = 1;
  std::int64_t max_tokens = 16;  ///< Mean tokens of a completion, from which a busy batch's arrivals follow.
  double request_rate = 0;       ///< As in BatchingScope.
  ArrivalClock clock = ArrivalClock::seconds;
  std::int64_t slow_ns = 0;  ///< A wait in every step.
  SamplingParameters sampling{};
  /// What each request asks; with a prefix, the requests share a store that is empty at first.
  ArmRequest request{};
  std::shared_ptr<const MaskVocabulary> vocabulary = nullptr;  ///< Needed of a request with a pattern.
  std::shared_ptr<const TokenBytes> texts = nullptr;           ///< Needed of a request for texts.
};

/// Serves the requests. A request that comes while the host waits for a step is seen after that step; its time counts
/// from when it came.
ServedRequests serve(const Engine& engine, const BatchWork& work, const ServeOptions& options);

}  // namespace decodelab
