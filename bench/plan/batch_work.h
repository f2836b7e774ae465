// The requests that a cell of phase `batching` serves: their lengths, and when they come.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/plan/arm_request.h"
#include "bench/plan/prompts.h"
#include "reports/store/record.h"

namespace decodelab {

/// One request. Prompts are half as long to one and a half times as long as the cell's length says, completions have 2
/// tokens to nearly twice as many as `--max-tokens` says, each length as likely as another; a request ends by its
/// length alone.
struct PlannedRequest {
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;
  double arrival = 0;  ///< In mean times between two requests, from the first; exponentially distributed gaps.
};

/// So many requests come for each row of the batch.
inline constexpr std::int64_t kRequestsOfARow = 4;

/// Returns the requests of a cell: the same for every arm, from `seed`. They come in the order of the list.
std::vector<PlannedRequest> planned_requests(const CellRecord& cell, std::uint64_t seed, std::int64_t max_tokens);

/// Holds the requests of a cell with their prompts.
struct BatchWork {
  std::vector<PlannedRequest> planned;
  std::vector<std::vector<std::int64_t>> prompts;  ///< Of each request.

  std::int64_t new_tokens() const;  ///< Of all requests together.
};

/// Returns the requests of a cell, whose prompts are cut from `prompts`, or random where there are none, and begin
/// alike where the arm asks for that.
BatchWork batch_work(const CellRecord& cell, std::uint64_t seed, std::int64_t max_tokens,
                     const std::vector<RealPrompt>& prompts, const ArmRequest& request, std::int64_t vocabulary_size);

/// Return the most tokens that a prompt or a completion of such a cell may have.
std::int64_t longest_prompt(std::int64_t length);
std::int64_t longest_completion(std::int64_t max_tokens);

}  // namespace decodelab
