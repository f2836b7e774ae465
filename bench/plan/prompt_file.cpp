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

std::vector<std::int64_t> ids_of(const nlohmann::json& line, const std::string& place) {
  std::vector<std::int64_t> ids;
  if (!line.contains("prompt_ids")) {
    return ids;
  }
  const nlohmann::json& list = line.at("prompt_ids");
  const bool are_ids = list.is_array() && std::ranges::all_of(list, [](const nlohmann::json& id) {
                         return id.is_number_integer() && id >= 0 && id <= INT32_MAX;
                       });
  if (!are_ids || list.empty()) {
    refuse_prompt_key(place, "prompt_ids", "a list of token ids that is not empty");
  }
  for (const nlohmann::json& id : list) {
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

PromptLine parse_prompt_line(std::string_view text, const std::string& place) {
  const nlohmann::json line = parse_json_object(text, place);
  check_keys(line, kPromptKeys, place);
  PromptLine prompt{.text = text_of_key(line, "prompt", place),
                    .ids = ids_of(line, place),
                    .prompt_class = text_of_key(line, "class", place)};
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

}  // namespace

std::vector<PromptLine> parse_prompt_lines(std::string_view text, const std::string& file_name) {
  std::vector<PromptLine> prompts;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      prompts.push_back(parse_prompt_line(line, fmt::format("{}, line {}", file_name, number)));
    }
  }
  if (prompts.empty()) {
    throw std::invalid_argument(fmt::format(
        "{}: expected a JSON object on each line, as in {{\"prompt\": \"Once upon a time\"}}, got none", file_name));
  }
  return prompts;
}

std::vector<PromptLine> load_prompt_lines(const std::filesystem::path& file) {
  return parse_prompt_lines(read_text_file(file, kMaxPromptFile), file.string());
}

}  // namespace decodelab
