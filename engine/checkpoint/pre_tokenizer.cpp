// Cuts a text into the words that byte-pair encoding works on, as the pre_tokenizer of a tokenizer.json says.
#include "engine/checkpoint/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"

namespace decodelab {
namespace {

using nlohmann::json;
using Behavior = PreTokenizer::Behavior;
using Step = PreTokenizer::Step;

// GPT-2's pattern (github.com/openai/gpt-2, src/encoder.py).
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct BehaviorName {
  std::string_view name;
  Behavior behavior;
};
constexpr std::array<BehaviorName, 5> kBehaviors{{{"Removed", Behavior::removed},
                                                  {"Isolated", Behavior::isolated},
                                                  {"MergedWithPrevious", Behavior::merged_with_previous},
                                                  {"MergedWithNext", Behavior::merged_with_next},
                                                  {"Contiguous", Behavior::contiguous}}};

// Turns the description into steps. ByteLevel must come last: nothing can be cut once bytes are written as characters.
class Builder {
 public:
  explicit Builder(const std::string& file_name) : file_name_(file_name) {}

  std::vector<Step> build(const json& description) {
    add(description);
    if (!complete_) {
      refuse_kind(description);
    }
    return std::move(steps_);
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const {
    throw std::invalid_argument(fmt::format("{}: pre_tokenizer: expected {}, got {}", file_name_, expected, got));
  }
  [[noreturn]] void refuse_kind(const json& description) const {
    refuse("ByteLevel, alone or last in a Sequence after Split and Digits",
           fmt::format("{}; this tokenizer cannot be read, give token ids with --prompt-ids", shown(description)));
  }

  void add(const json& part) {
    if (!part.is_object()) {
      refuse_kind(part);
    }
    const std::string kind = part.contains("type") && part["type"].is_string() ? part["type"].get<std::string>() : "";
    if (complete_) {
      refuse("ByteLevel as the last step", fmt::format("{} after it", in_quotes(kind)));
    }
    if (kind == "Sequence") {
      add_sequence(part);
    } else if (kind == "ByteLevel") {
      add_byte_level(part);
    } else if (kind == "Digits") {
      const bool individual = flag(part, "individual_digits");
      steps_.push_back(
          {.pattern = Regex(R"(\p{N})"), .behavior = individual ? Behavior::isolated : Behavior::contiguous});
    } else if (kind == "Split") {
      add_split(part);
    } else {
      refuse_kind(part);
    }
  }

  void add_sequence(const json& part) {
    const auto list = part.find("pretokenizers");
    if (list == part.end() || !list->is_array()) {
      refuse("'pretokenizers' as a list", shown(part));
    }
    for (const json& inner : *list) {
      add(inner);
    }
  }

  void add_byte_level(const json& part) {
    Step step{.add_prefix_space = flag(part, "add_prefix_space")};
    if (!part.contains("use_regex") || flag(part, "use_regex")) {
      step.pattern = Regex(kGpt2Pattern);
    }
    steps_.push_back(std::move(step));
    complete_ = true;
  }

  void add_split(const json& part) {
    const auto name = part.find("behavior");
    const auto known = name == part.end() || !name->is_string()
                           ? kBehaviors.end()
                           : std::ranges::find(kBehaviors, name->get_ref<const std::string&>(), &BehaviorName::name);
    if (known == kBehaviors.end()) {
      refuse("a Split with a behavior (Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous)",
             shown(part));
    }
    steps_.push_back({.pattern = pattern_of(part), .invert = flag(part, "invert"), .behavior = known->behavior});
  }

  Regex pattern_of(const json& part) const {
    const auto pattern = part.find("pattern");
    const bool single =
        pattern != part.end() && pattern->is_object() && pattern->size() == 1 && pattern->front().is_string();
    const std::string text = single ? pattern->front().get<std::string>() : "";
    if (!single || text.empty() || (!pattern->contains("Regex") && !pattern->contains("String"))) {
      refuse("a Split with a pattern, either {\"Regex\": ...} or {\"String\": ...}", shown(part));
    }
    try {
      return Regex(pattern->contains("Regex") ? text : literal(text));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(
          fmt::format("{}: pre_tokenizer: {}; give token ids with --prompt-ids instead", file_name_, error.what()));
    }
  }

  // A pattern that matches `text` and nothing else.
  static std::string literal(std::string_view text) {
    std::string pattern;
    for (const char c : text) {
      if (std::string_view(R"(\^$.|?*+()[]{}#-&~ )").find(c) != std::string_view::npos) {
        pattern += '\\';
      }
      pattern += c;
    }
    return pattern;
  }

  // A default would hide a misspelt key; Hugging Face's tokenizers have a default for use_regex alone, a recent key.
  bool flag(const json& part, const char* key) const {
    const auto value = part.find(key);
    if (value == part.end() || !value->is_boolean()) {
      refuse(fmt::format("'{}' as true or false", key), shown(part));
    }
    return value->get<bool>();
  }

  const std::string& file_name_;
  std::vector<Step> steps_;
  bool complete_ = false;
};

// Joins spans with their neighbours. Forwards a match joins what is before it; backwards, what is after.
template <typename Joins>
std::vector<TextSpan> join_spans(const std::vector<TextSpan>& spans, Joins joins) {
  std::vector<TextSpan> joined;
  bool previous = false;
  for (const TextSpan& span : spans) {
    if (!joined.empty() && joins(span.matched, previous)) {
      joined.back().begin = std::min(joined.back().begin, span.begin);
      joined.back().end = std::max(joined.back().end, span.end);
    } else {
      joined.push_back(span);
    }
    previous = span.matched;
  }
  return joined;
}

std::vector<TextSpan> apply_behavior(std::vector<TextSpan> spans, Behavior behavior) {
  const auto match_after_other = [](bool matched, bool previous) { return matched && !previous; };
  switch (behavior) {
    case Behavior::isolated: return spans;
    case Behavior::removed: std::erase_if(spans, [](const TextSpan& span) { return span.matched; }); return spans;
    case Behavior::contiguous:
      return join_spans(spans, [](bool matched, bool previous) { return matched == previous; });
    case Behavior::merged_with_previous: return join_spans(spans, match_after_other);
    case Behavior::merged_with_next: break;
  }
  std::ranges::reverse(spans);
  auto joined = join_spans(spans, match_after_other);
  std::ranges::reverse(joined);
  return joined;
}

void append_parts(std::vector<std::string>& parts, std::string word, const Step& step) {
  if (step.add_prefix_space && !word.starts_with(' ')) {
    word.insert(word.begin(), ' ');
  }
  if (!step.pattern.has_value()) {
    parts.push_back(std::move(word));
    return;
  }
  auto spans = step.pattern->split(word);
  if (step.invert) {
    for (TextSpan& span : spans) {
      span.matched = !span.matched;
    }
  }
  for (const TextSpan& span : apply_behavior(std::move(spans), step.behavior)) {
    if (span.begin != span.end) {
      parts.push_back(word.substr(span.begin, span.end - span.begin));
    }
  }
}

}  // namespace

PreTokenizer::PreTokenizer(const json& description, const std::string& file_name)
    : steps_(Builder(file_name).build(description)) {}

std::vector<std::string> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string> words;
  if (!text.empty()) {
    words.emplace_back(text);
  }
  for (const Step& step : steps_) {
    std::vector<std::string> parts;
    for (std::string& word : words) {
      append_parts(parts, std::move(word), step);
    }
    words = std::move(parts);
  }
  return words;
}

}  // namespace decodelab
