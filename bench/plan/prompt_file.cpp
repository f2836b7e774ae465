// Reads JSON lines of prompts.
#include "bench/plan/prompt_file.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"

namespace decodelab {
namespace {

constexpr std::uintmax_t kMaxPromptFile = 10'000'000;
constexpr std::array<std::string_view, 4> kPromptKeys{"prompt", "prompt_ids", "chat", "class"};
constexpr std::array<std::string_view, 27> kRequestKeys{"prompt",
                                                        "prompt_ids",
                                                        "chat",
                                                        "class",
                                                        "max_tokens",
                                                        "samples",
                                                        "top_k",
                                                        "min_tokens",
                                                        "seed",
                                                        "temperature",
                                                        "top_p",
                                                        "typical_p",
                                                        "repetition_penalty",
                                                        "sample",
                                                        "forbid_eos",
                                                        "regex",
                                                        "stop",
                                                        "allow_ids",
                                                        "log_probs",
                                                        "ranks",
                                                        "prompt_ranks",
                                                        "top_tokens",
                                                        "prompt_top_tokens",
                                                        "log_probs_of_ids",
                                                        "prompt_log_probs_of_ids",
                                                        "ties",
                                                        "log_probs_of"};

[[noreturn]] void refuse_prompt_key(const std::string& place, std::string_view key, std::string_view expected) {
  throw std::invalid_argument(fmt::format("{}: key '{}': expected {}", place, key, expected));
}

std::string text_of_key(const nlohmann::json& line, const char* key, const std::string& place) {
  if (!line.contains(key)) {
    return "";
  }
  if (!line.at(key).is_string() || line.at(key).get_ref<const std::string&>().empty()) {
    refuse_prompt_key(place, key, "a text that is not empty");
  }
  return line.at(key).get<std::string>();
}

std::vector<std::int64_t> ids_of(const nlohmann::json& line, const char* key, const std::string& place) {
  std::vector<std::int64_t> ids;
  if (!line.contains(key)) {
    return ids;
  }
  const nlohmann::json& list = line.at(key);
  const bool are_ids = list.is_array() && std::ranges::all_of(list, [](const nlohmann::json& id) {
                         return id.is_number_integer() && id >= 0 && id <= INT32_MAX;
                       });
  if (!are_ids || list.empty()) {
    refuse_prompt_key(place, key, "a list of token ids that is not empty");
  }
  for (const nlohmann::json& id : list) {
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

void take_number(const nlohmann::json& line, const char* key, const std::string& place,
                 std::optional<std::int64_t>& value) {
  if (line.contains(key)) {
    if (!line.at(key).is_number_integer() || line.at(key) < 0 || line.at(key) > (std::int64_t{1} << 53)) {
      refuse_prompt_key(place, key, "a whole number, 0 or more");
    }
    value = line.at(key).get<std::int64_t>();
  }
}

void take_number(const nlohmann::json& line, const char* key, const std::string& place, std::optional<double>& value) {
  if (line.contains(key)) {
    if (!line.at(key).is_number()) {
      refuse_prompt_key(place, key, "a number");
    }
    value = line.at(key).get<double>();
  }
}

void take_switch(const nlohmann::json& line, const char* key, const std::string& place, std::optional<bool>& value) {
  if (line.contains(key)) {
    if (!line.at(key).is_boolean()) {
      refuse_prompt_key(place, key, "true or false");
    }
    value = line.at(key).get<bool>();
  }
}

std::vector<std::string> texts_of_key(const nlohmann::json& list, const char* key, const std::string& place) {
  std::vector<std::string> texts;
  for (const nlohmann::json& text : list.is_array() ? list : nlohmann::json::array({list})) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      refuse_prompt_key(place, key, "a text that is not empty, or a list of them");
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

void take_ids(const nlohmann::json& line, const char* key, const std::string& place,
              std::optional<std::vector<std::int64_t>>& value) {
  if (line.contains(key)) {
    value = ids_of(line, key, place);
  }
}

LineSettings settings_of(const nlohmann::json& line, const std::string& place) {
  LineSettings settings;
  take_number(line, "max_tokens", place, settings.max_tokens);
  take_number(line, "samples", place, settings.samples);
  take_number(line, "top_k", place, settings.top_k);
  take_number(line, "min_tokens", place, settings.min_tokens);
  take_number(line, "seed", place, settings.seed);
  take_number(line, "temperature", place, settings.temperature);
  take_number(line, "top_p", place, settings.top_p);
  take_number(line, "typical_p", place, settings.typical_p);
  take_number(line, "repetition_penalty", place, settings.repetition_penalty);
  take_switch(line, "sample", place, settings.sample);
  take_switch(line, "forbid_eos", place, settings.forbid_eos);
  if (line.contains("regex")) {
    settings.regex = text_of_key(line, "regex", place);
  }
  if (line.contains("stop")) {
    settings.stop = texts_of_key(line.at("stop"), "stop", place);
  }
  take_switch(line, "log_probs", place, settings.log_probs);
  take_switch(line, "ranks", place, settings.ranks);
  take_switch(line, "prompt_ranks", place, settings.prompt_ranks);
  take_number(line, "top_tokens", place, settings.top_tokens);
  take_number(line, "prompt_top_tokens", place, settings.prompt_top_tokens);
  take_ids(line, "allow_ids", place, settings.allow_ids);
  take_ids(line, "log_probs_of_ids", place, settings.log_probs_of_ids);
  take_ids(line, "prompt_log_probs_of_ids", place, settings.prompt_log_probs_of_ids);
  if (line.contains("ties")) {
    settings.ties = text_of_key(line, "ties", place);
  }
  if (line.contains("log_probs_of")) {
    settings.log_probs_of = text_of_key(line, "log_probs_of", place);
  }
  return settings;
}

PromptLine parse_prompt_line(std::string_view text, const std::string& place, bool with_settings) {
  const nlohmann::json line = parse_json_object(text, place);
  with_settings ? check_keys(line, kRequestKeys, place) : check_keys(line, kPromptKeys, place);
  PromptLine prompt{.text = text_of_key(line, "prompt", place),
                    .ids = ids_of(line, "prompt_ids", place),
                    .prompt_class = text_of_key(line, "class", place),
                    .settings = with_settings ? settings_of(line, place) : LineSettings(),
                    .error = {}};
  if (line.contains("chat")) {
    if (!line.at("chat").is_boolean()) {
      refuse_prompt_key(place, "chat", "true or false");
    }
    prompt.chat = line.at("chat").get<bool>();
  }
  if (prompt.text.empty() == prompt.ids.empty()) {
    throw std::invalid_argument(fmt::format("{}: expected either a key 'prompt' or a key 'prompt_ids'", place));
  }
  if (prompt.chat && prompt.text.empty()) {
    refuse_prompt_key(place, "chat", "a key 'prompt' beside it, since ids are a whole prompt already");
  }
  return prompt;
}

/// Calls `take` with each line that is not empty, and with its place. Returns what it returned.
template <typename Take>
std::vector<PromptLine> take_lines(std::string_view text, const std::string& file_name, const Take& take) {
  std::vector<PromptLine> prompts;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      prompts.push_back(take(line, fmt::format("{}, line {}", file_name, number)));
    }
  }
  if (prompts.empty()) {
    throw std::invalid_argument(fmt::format(
        "{}: expected a JSON object on each line, as in {{\"prompt\": \"Once upon a time\"}}, got none", file_name));
  }
  return prompts;
}

}  // namespace

std::vector<PromptLine> parse_prompt_lines(std::string_view text, const std::string& file_name) {
  return take_lines(text, file_name, [](std::string_view line, const std::string& place) {
    return parse_prompt_line(line, place, false);
  });
}

std::vector<PromptLine> parse_request_lines(std::string_view text, const std::string& file_name) {
  return take_lines(text, file_name, [](std::string_view line, const std::string& place) {
    try {
      return parse_prompt_line(line, place, true);
    } catch (const std::invalid_argument& error) {
      return PromptLine{.error = error.what()};
    }
  });
}

std::vector<PromptLine> load_request_lines(const std::filesystem::path& file) {
  return parse_request_lines(read_text_file(file, kMaxPromptFile), file.string());
}

std::vector<PromptLine> load_prompt_lines(const std::filesystem::path& file) {
  return parse_prompt_lines(read_text_file(file, kMaxPromptFile), file.string());
}

}  // namespace decodelab
