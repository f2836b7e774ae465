// How completions are written: their samples, texts and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/completion.h"

namespace decodelab {

/// A completion and its text up to the stop string that ended it; no text without a tokenizer.
struct Sample {
  Completion completion;
  std::optional<std::string> text;
};

/// Says which samples of a prompt are given, and which keys they have.
struct CompletionKeys {
  std::int64_t samples = 1;  ///< With several, their list stands under `samples`.
  bool ranked = false;       ///< The best of more are given, the best first, with `mean_log_prob`.
  DetailsRequest details{};  ///< Those that are shown.
  bool has_text = false;     ///< There is a tokenizer: tokens have texts.
  bool speculates = false;   ///< Tokens were guessed: how many, and how many of them stood.
};

/// Returns the samples of one prompt that are given: all, in the order of their seeds, or the best. `text_of` returns
/// the text of a sample, by its number among those that were drawn.
std::vector<Sample> given_samples(const std::vector<Completion>& drawn, const CompletionKeys& keys,
                                  const std::function<std::optional<std::string>(std::size_t sample)>& text_of);

/// Returns the object of a prompt: with several samples their list, else the keys of the only one.
nlohmann::ordered_json to_json(const std::vector<Sample>& samples, const std::vector<std::int64_t>& prompt,
                               const CompletionKeys& keys);

/// Returns the object of a prompt as one line of JSON, with the prompt's index before its keys.
std::string to_json_line(std::size_t index, const nlohmann::ordered_json& object);

/// Counts the tokens that took no step of the model, since they were guessed.
class SkippedTokens {
 public:
  void add(const std::vector<Completion>& completions);
  /// Returns one sentence.
  std::string told() const;

 private:
  std::int64_t tokens_ = 0;
  std::int64_t proposed_ = 0;
  std::int64_t skipped_ = 0;
};

/// Returns the line that stands for a sample where only text is written: its text, or its ids.
std::string to_text(const Sample& sample);

}  // namespace decodelab
