// Decodes a run's prompts, each for itself: rows beside it would change nothing but the rounding of a 16-bit type.
#include "bench/measure/engine_completions.h"

#include <utility>

#include "engine/generation.h"

namespace decodelab {

std::vector<CompletionRecord> complete_prompts(const Engine& engine, std::int64_t arm_id,
                                               const std::vector<RealPrompt>& prompts, const ModelText& text) {
  const ModelConfig& config = engine.model().config();
  std::vector<CompletionRecord> records;
  for (std::size_t index = 0; index < prompts.size() && records.size() < kCompletedPrompts; ++index) {
    const RealPrompt& prompt = prompts[index];
    if (config.held_after_prefill(std::ssize(prompt.ids)) + kCompletedTokens > config.positions) {
      continue;
    }
    std::vector<std::int64_t> ids = generate(engine, {.prompts = {prompt.ids},
                                                      .max_tokens = kCompletedTokens,
                                                      .eos_token_ids = config.eos_token_ids(),
                                                      .details = {}})
                                        .front()
                                        .token_ids;
    CompletionRecord record{.arm_id = arm_id,
                            .prompt = static_cast<std::int64_t>(index),
                            .prompt_text = prompt.text,
                            .prompt_class = prompt.prompt_class,
                            .prompt_tokens = std::ssize(prompt.ids),
                            .token_ids = std::move(ids)};
    if (text.tokenizer) {
      record.text = text.completion_text(record.token_ids, config);
      if (record.prompt_text.empty()) {
        record.prompt_text = text.tokenizer->decode(prompt.ids);
      }
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace decodelab
