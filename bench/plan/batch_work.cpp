// Draws requests by the counter-based generator that makes prompts.
#include "bench/plan/batch_work.h"

#include <algorithm>
#include <cmath>

#include "engine/kernels/philox.h"

namespace decodelab {
namespace {

/// Another stream than that of the tokens of prompts.
constexpr std::uint64_t kRequestStream = 1;

std::int64_t between(std::int64_t low, std::int64_t high, std::uint32_t word) {
  return low + static_cast<std::int64_t>(word) % (high - low + 1);
}

}  // namespace

std::int64_t longest_prompt(std::int64_t length) { return length + length / 2; }
std::int64_t longest_completion(std::int64_t max_tokens) { return std::max(max_tokens, 2 * max_tokens - 2); }

std::vector<PlannedRequest> planned_requests(const CellRecord& cell, std::uint64_t seed, std::int64_t max_tokens) {
  std::vector<PlannedRequest> requests(static_cast<std::size_t>(kRequestsOfARow * cell.batch));
  constexpr double kWords = 4294967296.0;
  double now = 0;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    const PhiloxWords words = philox4x32(philox_counter(index, kRequestStream), seed);
    if (index > 0) {
      now -= std::log((words.word[2] + 0.5) / kWords);
    }
    requests[index] = {
        .prompt_tokens = between(std::max<std::int64_t>(cell.length - cell.length / 2, 1), longest_prompt(cell.length),
                                 words.word[0]),
        .new_tokens = between(std::min<std::int64_t>(2, max_tokens), longest_completion(max_tokens), words.word[1]),
        .arrival = now};
  }
  return requests;
}

std::int64_t BatchWork::new_tokens() const {
  std::int64_t total = 0;
  for (const PlannedRequest& request : planned) {
    total += request.new_tokens;
  }
  return total;
}

BatchWork batch_work(const CellRecord& cell, std::uint64_t seed, std::int64_t max_tokens,
                     const std::vector<RealPrompt>& prompts, const ArmRequest& request, std::int64_t vocabulary_size) {
  BatchWork work{.planned = planned_requests(cell, seed, max_tokens)};
  work.prompts = cell_prompts(prompts, seed, std::ssize(work.planned), longest_prompt(cell.length), vocabulary_size);
  for (std::size_t index = 0; index < work.planned.size(); ++index) {
    work.prompts[index].resize(static_cast<std::size_t>(work.planned[index].prompt_tokens));
  }
  begin_alike(request, cell.batch, work.prompts);
  return work;
}

}  // namespace decodelab
