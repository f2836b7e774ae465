// Ends completions.
#include "engine/completion.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace decodelab {

namespace {

/// Adds a token and its details, if any, and closes the completion where it ends.
void add_token(Completion& completion, const CompletionLimits& limits, std::int64_t token_id,
               const RowDetails* details) {
  if (details != nullptr && limits.details.prompt.any() && completion.token_ids.empty()) {
    completion.prompt_details = details->prompt;
  }
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

}  // namespace

void add_step(Completion& completion, const CompletionLimits& limits, const StepResult& step, std::size_t row) {
  if (!completion.open()) {
    return;
  }
  if (!step.exhausted.empty() && step.exhausted[row]) {
    completion.finish_reason = "dead-end";
    return;
  }
  add_token(completion, limits, step.token_ids[row], step.details.empty() ? nullptr : &step.details[row]);
}

void add_run(Completion& completion, const CompletionLimits& limits, const RowRun& run) {
  if (completion.open()) {
    completion.proposed += run.proposed;
    completion.rounds.push_back({.proposed = run.proposed, .accepted = run.accepted});
  }
  for (std::size_t token = 0; token < run.token_ids.size() && completion.open(); ++token) {
    const std::size_t before = completion.token_ids.size();
    add_token(completion, limits, run.token_ids[token], run.details.empty() ? nullptr : &run.details[token]);
    const bool guessed = static_cast<std::int64_t>(token) < run.accepted;
    completion.skipped += guessed && completion.token_ids.size() > before ? 1 : 0;
  }
  if (run.exhausted && completion.open()) {
    completion.finish_reason = "dead-end";
  }
}

double mean_log_prob(const Completion& completion) {
  const std::vector<TokenDetails>& of_tokens = completion.details;
  const double sum = std::accumulate(of_tokens.begin(), of_tokens.end(), 0.0,
                                     [](double so_far, const TokenDetails& of) { return so_far + of.log_prob; });
  return of_tokens.empty() ? -std::numeric_limits<double>::infinity() : sum / static_cast<double>(of_tokens.size());
}

}  // namespace decodelab
