// Cuts a text into the words that byte-pair encoding works on, as the pre_tokenizer of a tokenizer.json says.
#include "engine/checkpoint/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/checkpoint/tokenizer_part.h"

namespace decodelab {
namespace {

using nlohmann::json;
using Behavior = PreTokenizer::Behavior;
using Prefixed = PreTokenizer::Prefixed;
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
class PreTokenizerBuilder {
 public:
  explicit PreTokenizerBuilder(const std::string& file_name) : part_("pre_tokenizer", file_name) {}

  void add(const json& description) {
    const std::string kind = kind_of(description);
    if (byte_level_) {
      part_.refuse("ByteLevel as the last step", description);
    }
    if (kind == "Sequence") {
      for (const json& inner : part_.list(description, "pretokenizers")) {
        add(inner);
      }
    } else if (kind == "ByteLevel") {
      add_byte_level(description);
    } else if (kind == "Digits") {
      const bool individual = part_.flag(description, "individual_digits");
      steps_.push_back(
          {.pattern = Regex(R"(\p{N})"), .behavior = individual ? Behavior::isolated : Behavior::contiguous});
    } else if (kind == "Split") {
      add_split(description);
    } else if (kind == "WhitespaceSplit") {
      steps_.push_back({.pattern = Regex(R"(\s)"), .behavior = Behavior::removed});
    } else if (kind == "Metaspace") {
      add_metaspace(description);
    } else {
      part_.refuse_kind("ByteLevel, Split, Digits, WhitespaceSplit, Metaspace, or a Sequence of them", description);
    }
  }

  std::vector<Step> take() { return std::move(steps_); }
  bool byte_level() const { return byte_level_; }

 private:
  void add_byte_level(const json& description) {
    Step step{.prefixed = part_.flag(description, "add_prefix_space") ? Prefixed::all : Prefixed::none};
    // Hugging Face's tokenizers have a default for this key alone, a recent one.
    if (!description.contains("use_regex") || part_.flag(description, "use_regex")) {
      step.pattern = Regex(kGpt2Pattern);
    }
    steps_.push_back(std::move(step));
    byte_level_ = true;
  }

  void add_split(const json& description) {
    const std::string name = part_.text(description, "behavior");
    const auto known = std::ranges::find(kBehaviors, name, &BehaviorName::name);
    if (known == kBehaviors.end()) {
      part_.refuse("a Split with a behavior (Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous)",
                   description);
    }
    steps_.push_back({.pattern = part_.pattern(description),
                      .invert = part_.flag(description, "invert"),
                      .behavior = known->behavior});
  }

  void add_metaspace(const json& description) {
    Step step{.space = part_.text(description, "replacement"), .prefixed = prefixed_by(description)};
    // Both keys are recent; files without them mean the defaults of Hugging Face's tokenizers.
    if (!description.contains("split") || part_.flag(description, "split")) {
      step.pattern = pattern_of_text(step.space);
      step.behavior = Behavior::merged_with_next;
    }
    steps_.push_back(std::move(step));
  }

  Prefixed prefixed_by(const json& description) const {
    const std::string scheme =
        description.contains("prepend_scheme") ? part_.text(description, "prepend_scheme") : "always";
    const bool prefix = !description.contains("add_prefix_space") || part_.flag(description, "add_prefix_space");
    if ((scheme != "always" && scheme != "first" && scheme != "never") || (!prefix && scheme != "never")) {
      part_.refuse("a Metaspace with a prepend_scheme (always, first, never) that add_prefix_space agrees with",
                   description);
    }
    return scheme == "always" ? Prefixed::all : scheme == "first" ? Prefixed::first_of_the_text : Prefixed::none;
  }

  TokenizerPart part_;
  std::vector<Step> steps_;
  bool byte_level_ = false;
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

struct Word {
  std::string text;
  bool begins;  // At the beginning of the whole text.
};

void write_spaces_as(std::string& word, std::string_view space) {
  for (std::size_t at = word.find(' '); at != std::string::npos; at = word.find(' ', at + space.size())) {
    word.replace(at, 1, space);
  }
}

void append_parts(std::vector<Word>& parts, Word word, const Step& step) {
  std::string& text = word.text;
  if (step.space != " ") {
    write_spaces_as(text, step.space);
  }
  const bool prefixed = step.prefixed == Prefixed::all || (step.prefixed == Prefixed::first_of_the_text && word.begins);
  if (prefixed && !text.starts_with(step.space)) {
    text.insert(0, step.space);
  }
  if (!step.pattern.has_value()) {
    parts.push_back(std::move(word));
    return;
  }
  auto spans = step.pattern->split(text);
  if (step.invert) {
    for (TextSpan& span : spans) {
      span.matched = !span.matched;
    }
  }
  for (const TextSpan& span : apply_behavior(std::move(spans), step.behavior)) {
    if (span.begin != span.end) {
      parts.push_back(
          {.text = text.substr(span.begin, span.end - span.begin), .begins = word.begins && span.begin == 0});
    }
  }
}

}  // namespace

PreTokenizer::PreTokenizer(const json& description, const std::string& file_name) {
  if (description.is_null()) {
    return;
  }
  PreTokenizerBuilder builder(file_name);
  builder.add(description);
  steps_ = builder.take();
  spelling_ = builder.byte_level() ? Spelling::bytes : Spelling::characters;
}

std::vector<std::string> PreTokenizer::split(std::string_view text, bool begins) const {
  std::vector<Word> words;
  if (!text.empty()) {
    words.push_back({.text = std::string(text), .begins = begins});
  }
  for (const Step& step : steps_) {
    std::vector<Word> parts;
    for (Word& word : words) {
      append_parts(parts, std::move(word), step);
    }
    words = std::move(parts);
  }
  std::vector<std::string> texts;
  texts.reserve(words.size());
  for (Word& word : words) {
    texts.push_back(std::move(word.text));
  }
  return texts;
}

}  // namespace decodelab
