// Generates whole completions for a batch of prompts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/completion.h"
#include "engine/engine.h"

namespace decodelab {

/// Describes what to generate.
struct GenerationRequest {
  std::vector<std::vector<std::int64_t>> prompts;  ///< Token ids, none empty; one row of the batch each.
  std::int64_t max_tokens = 16;                    ///< Tokens of each completion, at least 1.
  std::vector<std::int64_t> eos_token_ids;         ///< Each ends a row; none: only max_tokens ends it.
  std::vector<DetailsRequest> details;             ///< As in SessionOptions, for prompts.
  bool keep_prefill_logits = false;
  std::vector<SamplingParameters> sampling = {};  ///< As in SessionOptions, for prompts.
  /// Completions of each prompt, which is prefilled once. Sample i of several draws with fork_seed(seed of the prompt,
  /// i).
  std::int64_t samples = 1;
  std::vector<TokenRules> rules{};                        ///< As in SessionOptions, for prompts.
  std::shared_ptr<const MaskVocabulary> vocabulary = {};  ///< As in SessionOptions.
  std::shared_ptr<const TokenBytes> texts = {};           ///< As in SessionOptions.
  /// Called with each token of a row in turn; returning true ends the row after that token (StopStrings::add() fits).
  /// May be empty. Row r is sample r % samples of prompt r / samples.
  std::function<bool(std::size_t row, std::int64_t token_id)> stops = {};
};

/// Decodes all prompts as one batch until every row has ended, and returns the samples of each prompt beside each
/// other. Rows that ended early are still computed, and are dropped once they are half of the batch; where the engine
/// reads tokens late, they are computed to the end.
///
/// Throws std::invalid_argument for no prompt, less than one sample, an empty one, ids outside of the vocabulary, and
/// more tokens than the model has positions.
std::vector<Completion> generate(const Engine& engine, const GenerationRequest& request);

}  // namespace decodelab
