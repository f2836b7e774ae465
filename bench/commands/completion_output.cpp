// Writes completions.
#include "bench/commands/completion_output.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace decodelab {
namespace {

/// Adds the keys of a sample: those of log-probabilities where they were asked for.
void add_to_json(const Sample& sample, const CompletionKeys& keys, nlohmann::ordered_json& json) {
  const Completion& completion = sample.completion;
  json["token_ids"] = completion.token_ids;
  json["text"] = sample.text ? nlohmann::ordered_json(*sample.text) : nullptr;
  json["finish_reason"] = completion.finish_reason;
  json["seed"] = completion.seed ? nlohmann::ordered_json(*completion.seed) : nullptr;
  if (keys.ranked) {
    json["mean_log_prob"] = completion.token_ids.empty() ? nullptr : nlohmann::ordered_json(mean_log_prob(completion));
  }
  if (keys.log_probs && !completion.token_log_probs.empty()) {
    json["token_log_probs"] = completion.token_log_probs;
    json["ranks"] = completion.ranks;
  }
}

}  // namespace

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
  if (keys.log_probs) {
    json["prefill_log_probs"] = samples.front().completion.prefill_log_probs;
  }
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
