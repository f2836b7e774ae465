// What a row has said, and when it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/sequences/round_trace.h"

namespace decodelab {

/// Holds a completion of one prompt.
struct Completion {
  std::vector<std::int64_t> token_ids;  ///< Without the end-of-sequence token.
  std::string finish_reason;            ///< `eos`, `stop`, `length`, `aborted`, or `dead-end` where its rules left no
                                        ///< token; empty while it is open.
  std::optional<std::uint64_t> seed;    ///< Seed of a sampled row: given, or drawn at random.
  std::vector<TokenDetails> prompt_details;  ///< One per token of the prompt but the first, where requested.
  std::vector<TokenDetails> details;         ///< One per token, where requested.
  std::vector<float> prefill_logits;         ///< [V], of the prompt's last token, where requested.
  std::int64_t proposed = 0;                 ///< Guesses that were checked for it.
  RoundCounts rounds;                        ///< What became of them, round by round.
  std::int64_t skipped = 0;                  ///< Its tokens that were guessed right: no step of the model was theirs.

  bool open() const { return finish_reason.empty(); }
};

/// Says when a completion ends, and what is kept of its steps.
struct CompletionLimits {
  std::int64_t max_tokens = 16;                 ///< At least 1.
  std::span<const std::int64_t> eos_token_ids;  ///< Each ends a completion; none: only the other limits do.
  const DetailsRequest& details;
  /// Called with each token in turn; returning true ends the completion after that token. May be empty.
  std::function<bool(std::int64_t token_id)> stops;
};

/// Adds what a step said to row `row` to its completion, and closes it where it ends. A closed completion stays as it
/// is.
void add_step(Completion& completion, const CompletionLimits& limits, const StepResult& step, std::size_t row);

/// Does the same with what a row said in a round of speculation, of which what stands behind the end is dropped.
void add_run(Completion& completion, const CompletionLimits& limits, const RowRun& run);

/// Returns the mean log-probability of a completion's tokens, by which samples are ranked; minus infinity where it has
/// none, or none was requested.
double mean_log_prob(const Completion& completion);

}  // namespace decodelab
