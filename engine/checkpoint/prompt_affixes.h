// The tokens that a tokenizer.json puts around a prompt: its post_processor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace decodelab {

/// Token ids that stand before and behind those of a prompt's text.
struct PromptAffixes {
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> behind;
};

/// Reads the value of the key `post_processor`: TemplateProcessing, ByteLevel, which adds nothing, and Sequences of
/// them; null adds nothing. Throws std::invalid_argument, naming `file_name` and the kind that was found, for anything
/// else.
PromptAffixes read_prompt_affixes(const nlohmann::json& description, const std::string& file_name);

}  // namespace decodelab
