// Whole completions for a batch of prompts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace decodelab {

/// What is to be generated.
struct GenerationRequest {
  std::vector<std::vector<std::int64_t>> prompts;  ///< Token ids, none empty; one row of the batch each.
  std::int64_t max_tokens = 16;                    ///< Tokens of each completion, at least 1.
  std::int64_t eos_token_id = -1;                  ///< Ends a row; -1: nothing does but max_tokens.
  DetailsRequest details;
  bool keep_prefill_logits = false;
  std::vector<SamplingParameters> sampling = {};  ///< As in SessionOptions.
  /// Told of each token of a row in turn; true ends the row after it (StopStrings::add() fits). Empty: nothing is told.
  std::function<bool(std::size_t row, std::int64_t token_id)> stops = {};
};

/// What became of one prompt.
struct Completion {
  std::vector<std::int64_t> token_ids;  ///< Without the end-of-sequence token.
  std::string finish_reason;            ///< `eos`, `stop` or `length`
  std::optional<std::uint64_t> seed;    ///< Of a sampled row: the given one, or the one that was drawn.
  std::vector<float> prefill_log_probs;
  std::vector<float> token_log_probs;  ///< One a token where they were asked for.
  std::vector<std::int64_t> ranks;     ///< One a token where they were asked for.
  std::vector<float> prefill_logits;   ///< [V], of the prompt's last token, where they were asked for.
};

/// Decodes all prompts as one batch until every row has ended. Rows that ended early are computed on, and dropped once
/// they are half of the batch; where the engine reads tokens late, they are computed on to the end.
///
/// Throws std::invalid_argument for no prompt, an empty one, ids outside of the vocabulary, and more tokens than the
/// model has positions.
std::vector<Completion> generate(const Engine& engine, const GenerationRequest& request);

}  // namespace decodelab
