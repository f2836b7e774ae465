// Reads the members of the parts of a tokenizer.json.
#include "engine/checkpoint/tokenizer_part.h"

#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace decodelab {

using nlohmann::json;

std::string kind_of(const json& part) {
  const auto type = part.is_object() ? part.find("type") : part.end();
  return type != part.end() && type->is_string() ? type->get<std::string>() : std::string();
}

TokenizerPart::TokenizerPart(std::string_view name, const std::string& file_name)
    : place_(fmt::format("{}: {}", file_name, name)) {}

void TokenizerPart::refuse(std::string_view expected, const json& found) const {
  throw std::invalid_argument(fmt::format("{}: expected {}, got {}", place_, expected, shown(found)));
}

void TokenizerPart::refuse_kind(std::string_view expected, const json& found) const {
  throw std::invalid_argument(
      fmt::format("{}: expected {}, got {}; this tokenizer cannot be read, give token ids with --prompt-ids", place_,
                  expected, shown(found)));
}

bool TokenizerPart::flag(const json& part, const char* key) const {
  const auto value = part.find(key);
  if (value == part.end() || !value->is_boolean()) {
    refuse(fmt::format("'{}' as true or false", key), part);
  }
  return value->get<bool>();
}

std::string TokenizerPart::text(const json& part, const char* key) const {
  const auto value = part.find(key);
  if (value == part.end() || !value->is_string()) {
    refuse(fmt::format("'{}' as a text", key), part);
  }
  return value->get<std::string>();
}

const json& TokenizerPart::list(const json& part, const char* key) const {
  const auto value = part.find(key);
  if (value == part.end() || !value->is_array()) {
    refuse(fmt::format("'{}' as a list", key), part);
  }
  return *value;
}

Regex TokenizerPart::pattern(const json& part) const {
  const auto pattern = part.find("pattern");
  const bool single =
      pattern != part.end() && pattern->is_object() && pattern->size() == 1 && pattern->front().is_string();
  const std::string text = single ? pattern->front().get<std::string>() : "";
  if (!single || text.empty() || (!pattern->contains("Regex") && !pattern->contains("String"))) {
    refuse("a pattern, either {\"Regex\": ...} or {\"String\": ...}", part);
  }
  try {
    return pattern->contains("Regex") ? Regex(text) : pattern_of_text(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}; give token ids with --prompt-ids instead", place_, error.what()));
  }
}

Regex pattern_of_text(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view(R"(\^$.|?*+()[]{}#-&~ )").find(c) != std::string_view::npos) {
      pattern += '\\';
    }
    pattern += c;
  }
  return Regex(pattern);
}

}  // namespace decodelab
