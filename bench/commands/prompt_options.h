// Turns the prompts that a person wrote into token ids of the model.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/plan/prompt_file.h"
#include "engine/checkpoint/model_text.h"

namespace decodelab {

/// Returns the ids of one line of `--prompts`: as they stand, of its text, or of its question in the form of the
/// model's chat template. Throws std::invalid_argument where the model has no tokenizer or template for it.
std::vector<std::int64_t> prompt_ids_of(const PromptLine& line, const ModelText& text);

}  // namespace decodelab
