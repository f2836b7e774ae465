// Rows of phase `batching` put together: what an arm did with the requests of one batch, length and rate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reports/statistics/batching_scope.h"
#include "reports/statistics/estimates.h"
#include "reports/statistics/summary.h"

namespace decodelab {

/// A mean over launches, with its unpaired 95 % interval where there are two launches or more.
struct MeanOfLaunches {
  double mean = 0;
  std::optional<Interval> interval;
};

struct Serving {
  const SummaryRow* row = nullptr;  ///< One of those that it comes from, for batch, length and arm; never null.
  double request_rate = 0;          ///< As in BatchingScope.
  std::optional<MeanOfLaunches> tokens_per_second;
  std::optional<MeanOfLaunches> first_token_ns;
  std::optional<MeanOfLaunches> between_tokens_ns;
  RequestLimits limits{};                                    ///< Of the goodput; none where it was not asked for.
  std::optional<MeanOfLaunches> good_requests_per_second{};  ///< Requests answered within them: the goodput.
};

/// Returns what was measured in phase batching, by batch, length, rate (all at once first) and arm, in the order of the
/// plan.
std::vector<Serving> servings_of(const RunSummary& summary);

}  // namespace decodelab
