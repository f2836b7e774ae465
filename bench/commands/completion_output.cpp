// Writes completions.
#include "bench/commands/completion_output.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

/// Returns a value of each token; null of those whose logits have no details.
template <typename Value>
Json of_each(const std::vector<TokenDetails>& tokens, Value&& value) {
  Json all = Json::array();
  for (const TokenDetails& token : tokens) {
    all.push_back(token.refused ? Json(nullptr) : Json(value(token)));
  }
  return all;
}

Json top_tokens_of(const TokenDetails& details, const CompletionKeys& keys) {
  Json tokens = Json::array();
  for (const TopToken& token : details.top) {
    tokens.push_back({{"token_id", token.id},
                      {"text", keys.has_text ? Json(token.text) : Json(nullptr)},
                      {"log_prob", token.log_prob}});
  }
  return {{"tokens", std::move(tokens)}, {"tied", details.tied}, {"truncated", details.truncated}};
}

/// Adds the details of tokens under keys that begin with `prefix`, but for log-probabilities.
void add_details(const std::vector<TokenDetails>& tokens, const TokenRequest& shown, const CompletionKeys& keys,
                 const std::string& prefix, Json& json) {
  if (shown.rank) {
    json[prefix + "ranks"] = of_each(tokens, [](const TokenDetails& of) { return of.rank; });
  }
  if (shown.top > 0) {
    json[prefix + "top_tokens"] = of_each(tokens, [&](const TokenDetails& of) { return top_tokens_of(of, keys); });
  }
  if (!shown.ids.empty()) {
    json[prefix + "log_probs_of_ids"] = of_each(tokens, [](const TokenDetails& of) { return of.log_probs_of_ids; });
  }
}

/// Adds the keys of a sample: those of details where they were asked for.
void add_to_json(const Sample& sample, const CompletionKeys& keys, nlohmann::ordered_json& json) {
  const Completion& completion = sample.completion;
  json["token_ids"] = completion.token_ids;
  json["text"] = sample.text ? nlohmann::ordered_json(*sample.text) : nullptr;
  json["finish_reason"] = completion.finish_reason;
  json["seed"] = completion.seed ? nlohmann::ordered_json(*completion.seed) : nullptr;
  if (keys.ranked) {
    json["mean_log_prob"] = completion.token_ids.empty() ? nullptr : nlohmann::ordered_json(mean_log_prob(completion));
  }
  if (keys.speculates) {
    json["proposed_tokens"] = completion.proposed;
    json["skipped_tokens"] = completion.skipped;
    json["rounds"] = Json::array();
    for (const RoundCount& round : completion.rounds) {
      json["rounds"].push_back({round.proposed, round.accepted});
    }
  }
  if (completion.details.empty()) {
    return;
  }
  if (keys.details.generated.log_prob) {
    json["token_log_probs"] = of_each(completion.details, [](const TokenDetails& of) { return of.log_prob; });
  }
  add_details(completion.details, keys.details.generated, keys, "", json);
}

}  // namespace

void SkippedTokens::add(const std::vector<Completion>& completions) {
  for (const Completion& completion : completions) {
    tokens_ += std::ssize(completion.token_ids);
    proposed_ += completion.proposed;
    skipped_ += completion.skipped;
  }
}

std::string SkippedTokens::told() const {
  return fmt::format("{} of {} tokens were skipped: so many of {} guesses stood", skipped_, tokens_, proposed_);
}

std::vector<Sample> given_samples(const std::vector<Completion>& drawn, const CompletionKeys& keys,
                                  const std::function<std::optional<std::string>(std::size_t sample)>& text_of) {
  std::vector<Sample> samples;
  for (std::size_t sample = 0; sample < drawn.size(); ++sample) {
    samples.push_back({.completion = drawn[sample], .text = text_of(sample)});
  }
  if (keys.ranked) {
    std::ranges::stable_sort(samples, std::ranges::greater(),
                             [](const Sample& sample) { return mean_log_prob(sample.completion); });
    samples.resize(static_cast<std::size_t>(keys.samples));
  }
  return samples;
}

nlohmann::ordered_json to_json(const std::vector<Sample>& samples, const std::vector<std::int64_t>& prompt,
                               const CompletionKeys& keys) {
  nlohmann::ordered_json json{{"prompt_ids", prompt}};
  if (keys.samples == 1) {
    add_to_json(samples.front(), keys, json);
  } else {
    json["samples"] = nlohmann::ordered_json::array();
    for (const Sample& sample : samples) {
      add_to_json(sample, keys, json["samples"].emplace_back(nlohmann::ordered_json::object()));
    }
  }
  const std::vector<TokenDetails>& of_prompt = samples.front().completion.prompt_details;
  if (keys.details.prompt.log_prob) {
    json["prefill_log_probs"] = of_each(of_prompt, [](const TokenDetails& of) { return of.log_prob; });
  }
  add_details(of_prompt, keys.details.prompt, keys, "prompt_", json);
  return json;
}

std::string to_json_line(std::size_t index, const nlohmann::ordered_json& object) {
  nlohmann::ordered_json line{{"index", index}};
  line.update(object);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_text(const Sample& sample) {
  return sample.text ? *sample.text : fmt::format("{}", fmt::join(sample.completion.token_ids, ","));
}

}  // namespace decodelab
