// Finds and loads the models that guess.
#include "bench/commands/draft_options.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "bench/commands/checkpoint_source.h"
#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "bench/plan/arm.h"
#include "engine/checkpoint/model_text.h"
#include "engine/checkpoint/weights.h"
#include "engine/drafts.h"

namespace decodelab {
namespace {

/// Throws where two models call different bytes by one token.
void check_tokens(const std::string& model, const std::string& draft) {
  const ModelText text = text_of_model(model);
  const ModelText of_draft = text_of_model(draft);
  if (!text.tokenizer || !of_draft.tokenizer) {
    return;
  }
  const std::vector<std::string> bytes = text.token_bytes("--draft");
  const std::vector<std::string> other = of_draft.token_bytes("--draft");
  const auto differ = std::ranges::mismatch(bytes, other);
  if (differ.in1 != bytes.end() || differ.in2 != other.end()) {
    throw std::invalid_argument(fmt::format("it has another tokenizer than {}: the first token that differs is {}",
                                            model, differ.in1 - bytes.begin()));
  }
}

}  // namespace

void add_draft_option(CLI::App& command, std::vector<std::string>& drafts) {
  command
      .add_option("--draft", drafts,
                  "NAME=MODEL: a smaller model that guesses tokens ahead for arms with draft-model; repeat")
      ->allow_extra_args(false);
}

std::map<std::string, ModelConfig> configs_of_drafts(std::span<const NamedDraft> drafts, const std::string& model) {
  std::map<std::string, ModelConfig> configs;
  for (const NamedDraft& draft : drafts) {
    try {
      const ModelConfig config = config_of(draft.model);
      check_draft(config_of(model), config);
      check_tokens(model, draft.model);
      configs.emplace(draft.name, config);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("--draft {}={}: {}", draft.name, draft.model, error.what()));
    }
  }
  return configs;
}

void open_drafts(std::vector<NamedDraft>& drafts, const std::string& model, ElementType dtype,
                 const std::string& device) {
  if (drafts.empty()) {
    return;
  }
  const std::int64_t bytes = std::accumulate(
      drafts.begin(), drafts.end(), weight_bytes(config_of(model), dtype),
      [&](std::int64_t sum, const NamedDraft& draft) { return sum + weight_bytes(config_of(draft.model), dtype); });
  require_memory(bytes, memory_to_take(device), fmt::format("{} and its drafts", model));
  for (NamedDraft& draft : drafts) {
    draft.checkpoint = open_checkpoint(draft.model, dtype, device).path.string();
  }
}

Drafts load_drafts(std::span<const NamedDraft> drafts, ElementType dtype, const std::string& device) {
  Drafts loaded;
  for (const NamedDraft& draft : drafts) {
    ByteProgress progress("loading " + draft.model);
    loaded.emplace(draft.name, Model::load(draft.checkpoint, dtype, device, memory_to_take(device),
                                           [&](std::int64_t done, std::int64_t total) { progress(done, total); }));
  }
  return loaded;
}

std::string speculating_arm(const std::string& arm, std::int64_t guesses, std::span<const NamedDraft> drafts) {
  if (guesses == 0 && drafts.empty()) {
    return arm;
  }
  const EnginePlan plan = bind_arm(parse_arm(arm), EnginePlan{});
  const std::string& bound = plan.proposer.variant();
  if (!bound.empty()) {
    if (guesses == 0 && plan.proposer.value().draft) {
      return arm;
    }
    throw std::invalid_argument(fmt::format(
        "{} guesses by {}, and the arm {} guesses by {} already: leave out one of the two",
        drafts.empty() ? "--speculate" : "--draft", drafts.empty() ? "suffix-automaton" : "draft-model", arm, bound));
  }
  if (drafts.size() > 1) {
    throw std::invalid_argument(
        fmt::format("--draft: which of the {} drafts should guess? Say it in the arm: {}", drafts.size(),
                    with_words(arm, fmt::format(",+draft-model:draft={}", drafts.front().name))));
  }
  const std::string tokens = guesses == 0 ? "" : fmt::format(":tokens={}", guesses);
  return with_words(arm, fmt::format(",+{}{}", drafts.empty() ? "suffix-automaton" : "draft-model", tokens));
}

}  // namespace decodelab
