// What an arm says to the prompts of a run, in greedy decoding.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/plan/prompts.h"
#include "engine/checkpoint/model_text.h"
#include "engine/engine.h"
#include "reports/store/record.h"

namespace decodelab {

/// Prompts that are completed, the first of the run's, and the tokens of a completion.
inline constexpr std::size_t kCompletedPrompts = 3;
inline constexpr std::int64_t kCompletedTokens = 24;

/// Returns the completions of the first prompts by `engine`, which is the arm's; their texts are empty where the model
/// has no tokenizer. A prompt that does not fit the model is left out.
std::vector<CompletionRecord> complete_prompts(const Engine& engine, std::int64_t arm_id,
                                               const std::vector<RealPrompt>& prompts, const ModelText& text);

}  // namespace decodelab
