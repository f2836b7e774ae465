// The prompts of a cell, the same for every arm, engine and machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/plan/prompt_file.h"
#include "engine/checkpoint/model_text.h"

namespace decodelab {

/// `batch` rows of `length` ids drawn uniformly from the vocabulary by a counter-based generator.
std::vector<std::vector<std::int64_t>> random_prompts(std::uint64_t seed, std::int64_t batch, std::int64_t length,
                                                      std::int64_t vocabulary_size);

/// A prompt that a person wrote, as the model reads it.
struct RealPrompt {
  std::string text{};  ///< Empty where the file has ids.
  std::string prompt_class{};
  std::vector<std::int64_t> ids;
  bool operator==(const RealPrompt&) const = default;
};

/// Returns the prompts of a file's lines in the model's ids; `flag` names what asked for them. Throws
/// std::invalid_argument for a text where the model has no tokenizer, for a question where it has no chat template, and
/// for ids outside of the vocabulary.
std::vector<RealPrompt> real_prompts(std::string_view flag, const std::vector<PromptLine>& lines, const ModelText& text,
                                     std::int64_t vocabulary_size);

/// Returns `batch` rows of `length` ids: random ones where there are no prompts; else row r begins with prompt r, and
/// the prompts that follow fill it up, from the first again after the last.
std::vector<std::vector<std::int64_t>> cell_prompts(const std::vector<RealPrompt>& prompts, std::uint64_t seed,
                                                    std::int64_t batch, std::int64_t length,
                                                    std::int64_t vocabulary_size);

}  // namespace decodelab
