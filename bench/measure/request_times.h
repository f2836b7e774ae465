// When the tokens of requests came, and what a sample of phase `batching` is of them.
#pragma once

#include <cstdint>
#include <span>

#include "reports/statistics/batching_scope.h"
#include "reports/store/record.h"

namespace decodelab {

/// One request that was answered.
struct RequestTimes {
  std::int64_t first_ns = 0;  ///< From its arrival to its first token.
  std::int64_t later_ns = 0;  ///< From its first token to its last.
  std::int64_t tokens = 0;

  /// Returns whether its first token came in time, and on average those after it.
  bool within(const RequestLimits& limits) const;
};

/// Returns a sample of requests that were served together in `wall_ns`, at least 1; of sample `good` 0 where none was
/// within its limits.
std::int64_t batching_sample_ns(std::span<const RequestTimes> requests, std::int64_t wall_ns,
                                const BatchingScope& scope);

/// Throws WorkerError with status failed where a timed sample of such a cell is 0.
void check_sample(const CellRecord& cell, std::int64_t sample_ns);

}  // namespace decodelab
