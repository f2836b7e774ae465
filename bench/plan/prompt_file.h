// Prompts that a person wrote: JSON lines, one schema for all commands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// What a line asks of its own completions; what it leaves out is as the command's flags of these names say.
struct LineSettings {
  std::optional<std::int64_t> max_tokens;
  std::optional<std::int64_t> samples;
  std::optional<std::int64_t> top_k;
  std::optional<std::int64_t> min_tokens;
  std::optional<std::int64_t> seed;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<double> typical_p;
  std::optional<double> repetition_penalty;
  std::optional<bool> sample;
  std::optional<bool> forbid_eos;
  std::optional<std::string> regex;
  std::optional<std::vector<std::string>> stop;
  std::optional<std::vector<std::int64_t>> allow_ids;
  // Details of tokens.
  std::optional<bool> log_probs;
  std::optional<bool> ranks;
  std::optional<bool> prompt_ranks;
  std::optional<std::int64_t> top_tokens;
  std::optional<std::int64_t> prompt_top_tokens;
  std::optional<std::vector<std::int64_t>> log_probs_of_ids;
  std::optional<std::vector<std::int64_t>> prompt_log_probs_of_ids;
  std::optional<std::string> ties;
  std::optional<std::string> log_probs_of;
};

/// One line of a file. Either `text` or `ids` is there.
struct PromptLine {
  std::string text;               ///< `prompt`
  std::vector<std::int64_t> ids;  ///< `prompt_ids`
  bool chat = false;         ///< `chat`: the text is a question, which the model's chat template makes a prompt of.
  std::string prompt_class;  ///< `class`: what kind of text it is; empty where the line names none.
  LineSettings settings;     ///< Keys of these names; only parse_request_lines() reads them.
  std::string error;         ///< Why the line is none of all this; only of parse_request_lines().
};

/// Returns the prompts of a text with one JSON object a line; empty lines are left out. The keys are `prompt` or
/// `prompt_ids`, `chat` and `class`. Throws std::invalid_argument naming the file and the line for anything else, a key
/// of another name, an empty prompt, negative ids, and a text without prompts.
std::vector<PromptLine> parse_prompt_lines(std::string_view text, const std::string& file_name);

/// Does the same, but reads settings too, and gives a line that it would refuse an `error` in its place. Throws for a
/// text without a line.
std::vector<PromptLine> parse_request_lines(std::string_view text, const std::string& file_name);

/// Reads the file that `--prompts` names. Throws as parse_prompt_lines(), and where it is missing or over 10 MB.
std::vector<PromptLine> load_prompt_lines(const std::filesystem::path& file);
std::vector<PromptLine> load_request_lines(const std::filesystem::path& file);

}  // namespace decodelab
