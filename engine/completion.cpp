// Ends completions.
#include "engine/completion.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace decodelab {

void add_step(Completion& completion, const CompletionLimits& limits, const StepResult& step, std::size_t row) {
  if (!completion.open()) {
    return;
  }
  if (!step.exhausted.empty() && step.exhausted[row]) {
    completion.finish_reason = "dead-end";
    return;
  }
  const RowDetails* const details = step.details.empty() ? nullptr : &step.details[row];
  if (details != nullptr && limits.details.prompt.any() && completion.token_ids.empty()) {
    completion.prompt_details = details->prompt;
  }
  const std::int64_t token_id = step.token_ids[row];
  if (std::ranges::find(limits.eos_token_ids, token_id) != limits.eos_token_ids.end()) {
    completion.finish_reason = "eos";
    return;
  }
  completion.token_ids.push_back(token_id);
  if (details != nullptr && limits.details.generated.any()) {
    completion.details.push_back(details->token);
  }
  if (limits.stops && limits.stops(token_id)) {
    completion.finish_reason = "stop";
  } else if (std::ssize(completion.token_ids) == limits.max_tokens) {
    completion.finish_reason = "length";
  }
}

double mean_log_prob(const Completion& completion) {
  const std::vector<TokenDetails>& of_tokens = completion.details;
  const double sum = std::accumulate(of_tokens.begin(), of_tokens.end(), 0.0,
                                     [](double so_far, const TokenDetails& of) { return so_far + of.log_prob; });
  return of_tokens.empty() ? -std::numeric_limits<double>::infinity() : sum / static_cast<double>(of_tokens.size());
}

}  // namespace decodelab
