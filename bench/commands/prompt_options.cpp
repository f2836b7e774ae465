// Chooses how a line of prompts becomes ids.
#include "bench/commands/prompt_options.h"

namespace decodelab {

std::vector<std::int64_t> prompt_ids_of(const PromptLine& line, const ModelText& text) {
  if (!line.ids.empty()) {
    return line.ids;
  }
  return line.chat ? text.chat_ids("--prompts", line.text) : text.prompt_ids("--prompts", line.text);
}

}  // namespace decodelab
