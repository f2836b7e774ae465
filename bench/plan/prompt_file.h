// Prompts that a person wrote: JSON lines, one schema for all commands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// One line of a file. Either `text` or `ids` is there.
struct PromptLine {
  std::string text;               ///< `prompt`
  std::vector<std::int64_t> ids;  ///< `prompt_ids`
  bool chat = false;         ///< `chat`: the text is a question, which the model's chat template makes a prompt of.
  std::string prompt_class;  ///< `class`: what kind of text it is; empty where the line names none.
};

/// Returns the prompts of a text with one JSON object a line; empty lines are left out. The keys are `prompt` or
/// `prompt_ids`, `chat` and `class`. Throws std::invalid_argument naming the file and the line for anything else, a key
/// of another name, an empty prompt, negative ids, and a text without prompts.
std::vector<PromptLine> parse_prompt_lines(std::string_view text, const std::string& file_name);

/// Reads the file that `--prompts` names. Throws as parse_prompt_lines(), and where it is missing or over 10 MB.
std::vector<PromptLine> load_prompt_lines(const std::filesystem::path& file);

}  // namespace decodelab
