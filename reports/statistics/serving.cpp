// Finds the rows that belong together by all that is not what a sample is.
#include "reports/statistics/serving.h"

#include <algorithm>
#include <tuple>

namespace decodelab {
namespace {

std::optional<MeanOfLaunches> time_of(const SummaryRow& row) {
  if (!row.cell_mean_ns || *row.cell_mean_ns <= 0) {
    return std::nullopt;
  }
  return MeanOfLaunches{.mean = *row.cell_mean_ns, .interval = row.cell_mean_interval_ns};
}

/// Returns how many tokens one serving makes; 0 where nothing was counted.
double tokens_of(const SummaryRow& row) {
  const auto tokens = row.counters.find("new_tokens");
  return tokens == row.counters.end() ? 0 : static_cast<double>(tokens->second);
}

/// Returns `count` a second, where the row's time is that of so many.
std::optional<MeanOfLaunches> rate_of(const SummaryRow& row, double count) {
  const std::optional<MeanOfLaunches> time = time_of(row);
  if (!time || count <= 0) {
    return std::nullopt;
  }
  constexpr double kNsPerSecond = 1e9;
  MeanOfLaunches rate{.mean = kNsPerSecond * count / time->mean, .interval = {}};
  if (time->interval && time->interval->low > 0) {
    rate.interval = Interval{.low = kNsPerSecond * count / time->interval->high,
                             .high = kNsPerSecond * count / time->interval->low};
  }
  return rate;
}

}  // namespace

std::vector<Serving> servings_of(const RunSummary& summary) {
  std::vector<Serving> servings;
  const auto place_of = [](const SummaryRow& row, double rate) {
    return std::tuple(row.cell.batch, row.cell.length, rate, row.arm.id);
  };
  for (const SummaryRow& row : summary.rows) {
    if (row.cell.phase != Phase::batching || row.arm.roofline()) {
      continue;
    }
    const BatchingScope scope = batching_scope_from_string(row.cell.scope);
    auto serving = std::ranges::find_if(servings, [&](const Serving& known) {
      return place_of(*known.row, known.request_rate) == place_of(row, scope.request_rate);
    });
    if (serving == servings.end()) {
      serving = servings.insert(servings.end(), {.row = &row, .request_rate = scope.request_rate});
    }
    switch (scope.sample) {
      case BatchingScope::Sample::served: serving->tokens_per_second = rate_of(row, tokens_of(row)); break;
      case BatchingScope::Sample::first_token: serving->first_token_ns = time_of(row); break;
      case BatchingScope::Sample::between_tokens: serving->between_tokens_ns = time_of(row); break;
      case BatchingScope::Sample::good:
        serving->limits = scope.limits;
        serving->good_requests_per_second = rate_of(row, 1);
        break;
    }
  }
  std::ranges::stable_sort(servings, {}, [](const Serving& serving) {
    return std::tuple(serving.row->cell.batch, serving.row->cell.length, serving.request_rate);
  });
  return servings;
}

}  // namespace decodelab
