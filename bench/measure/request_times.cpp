// Sums over requests.
#include "bench/measure/request_times.h"

#include <algorithm>

#include <fmt/format.h>

#include "bench/measure/worker.h"

namespace decodelab {
namespace {

constexpr double kNsPerMs = 1e6;

std::int64_t sample_of(std::span<const RequestTimes> requests, std::int64_t wall_ns, const BatchingScope& scope) {
  std::int64_t first = 0;
  std::int64_t later = 0;
  std::int64_t gaps = 0;
  for (const RequestTimes& request : requests) {
    first += request.first_ns;
    later += request.later_ns;
    gaps += request.tokens - 1;
  }
  switch (scope.sample) {
    case BatchingScope::Sample::first_token: return first / std::ssize(requests);
    case BatchingScope::Sample::between_tokens: return gaps == 0 ? 0 : later / gaps;
    case BatchingScope::Sample::served:
    case BatchingScope::Sample::good: break;
  }
  return wall_ns;
}

}  // namespace

bool RequestTimes::within(const RequestLimits& limits) const {
  const bool first = limits.ttft_ms == 0 || static_cast<double>(first_ns) <= kNsPerMs * limits.ttft_ms;
  const bool others = limits.tpot_ms == 0 ||
                      static_cast<double>(later_ns) <= kNsPerMs * limits.tpot_ms * static_cast<double>(tokens - 1);
  return first && others;
}

std::int64_t batching_sample_ns(std::span<const RequestTimes> requests, std::int64_t wall_ns,
                                const BatchingScope& scope) {
  if (scope.sample != BatchingScope::Sample::good) {
    return std::max<std::int64_t>(1, sample_of(requests, wall_ns, scope));
  }
  const auto good =
      std::ranges::count_if(requests, [&](const RequestTimes& request) { return request.within(scope.limits); });
  return good == 0 ? 0 : std::max<std::int64_t>(1, wall_ns / good);
}

void check_sample(const CellRecord& cell, std::int64_t sample_ns) {
  if (sample_ns == 0 && cell.phase == Phase::batching) {
    throw WorkerError(RowStatus::failed,
                      fmt::format("--goodput: no request was answered within {}; the other cells of these requests say "
                                  "how long tokens took",
                                  limits_words(batching_scope_from_string(cell.scope).limits)));
  }
}

}  // namespace decodelab
