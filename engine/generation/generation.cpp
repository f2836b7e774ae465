// The loop from prompts to completions.
#include "engine/generation/generation.h"

#include "profiles/range.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace decodelab {
namespace {

/// Adds one step's token and details to each open row, and closes the rows that end with it.
void take(const StepResult& step, const GenerationRequest& request, std::vector<Completion>& completions) {
  for (std::size_t row = 0; row < completions.size(); ++row) {
    Completion& completion = completions[row];
    if (!completion.finish_reason.empty()) {
      continue;
    }
    const TokenDetails* details = step.details.empty() ? nullptr : &step.details[row];
    if (details != nullptr && request.details.prefill_log_probs && completion.token_ids.empty()) {
      completion.prefill_log_probs = details->prefill_log_probs;
    }
    if (step.token_ids[row] == request.eos_token_id) {
      completion.finish_reason = "eos";
      continue;
    }
    completion.token_ids.push_back(step.token_ids[row]);
    if (details != nullptr && request.details.token_log_prob) {
      completion.token_log_probs.push_back(details->token_log_prob);
    }
    if (details != nullptr && request.details.rank) {
      completion.ranks.push_back(details->rank);
    }
    if (request.stops && request.stops(row, step.token_ids[row])) {
      completion.finish_reason = "stop";
    } else if (static_cast<std::int64_t>(completion.token_ids.size()) == request.max_tokens) {
      completion.finish_reason = "length";
    }
  }
}

}  // namespace

std::vector<Completion> generate(const Engine& engine, const GenerationRequest& request) {
  if (request.prompts.empty()) {
    throw std::invalid_argument("there is nothing to generate from: give at least one prompt");
  }
  if (request.max_tokens < 1) {
    throw std::invalid_argument(fmt::format("a completion needs at least 1 token, got {}", request.max_tokens));
  }
  const std::size_t longest =
      std::ranges::max_element(request.prompts, {}, [](const auto& prompt) { return prompt.size(); })->size();
  const std::int64_t positions = engine.model().config().positions;
  // The last chosen token is not fed back, so it needs no position.
  const std::int64_t needed = static_cast<std::int64_t>(longest) + request.max_tokens - 1;
  if (needed > positions) {
    throw std::invalid_argument(
        fmt::format("a prompt of {} tokens and {} more need {} positions, and the model has {}: shorten one of them",
                    longest, request.max_tokens, needed, positions));
  }
  const auto batch_size = static_cast<std::int64_t>(request.prompts.size());
  const std::vector<SamplingParameters> sampling = complete_sampling(request.sampling, batch_size);
  Session session(engine,
                  {.batch_size = batch_size, .max_tokens = needed, .details = request.details, .sampling = sampling});
  std::vector<Completion> completions(request.prompts.size());
  for (std::size_t row = 0; row < completions.size(); ++row) {
    completions[row].seed = sampling[row].seed;
  }
  auto step = [index = std::int64_t{0}](auto&& work) mutable {
    const StepRange range(index++);
    return work();
  };
  take(step([&] { return session.prefill(request.prompts); }), request, completions);
  if (request.keep_prefill_logits) {
    const std::vector<float> logits = session.last_logits();
    const auto vocabulary = static_cast<std::ptrdiff_t>(logits.size() / completions.size());
    for (std::size_t row = 0; row < completions.size(); ++row) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row) * vocabulary;
      completions[row].prefill_logits.assign(begin, begin + vocabulary);
    }
  }
  const auto open = [](const Completion& completion) { return completion.finish_reason.empty(); };
  while (std::ranges::any_of(completions, open)) {
    take(step([&] { return session.decode(); }), request, completions);
  }
  return completions;
}

}  // namespace decodelab
