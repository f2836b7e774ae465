// Finds and loads the models that guess.
#include "bench/commands/draft_options.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/made_once.h"
#include "bench/commands/checkpoint_source.h"
#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "bench/measure/process/draft_process.h"
#include "bench/plan/arm.h"
#include "bench/plan/sweep_plan.h"
#include "engine/checkpoint/model_text.h"
#include "engine/checkpoint/weights.h"
#include "engine/drafts.h"
#include "engine/runtime.h"
#include "engine/sequences/proposer.h"

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

std::shared_ptr<DraftProcess> start_draft(const NamedDraft& draft, ElementType dtype, const std::string& device,
                                          const std::vector<std::int64_t>& places) {
  std::vector<std::string> arguments{std::filesystem::read_symlink("/proc/self/exe").string(),
                                     "draft",
                                     "--checkpoint",
                                     draft.checkpoint,
                                     "--dtype",
                                     name_of_dtype(dtype),
                                     "--device",
                                     device,
                                     "--threads",
                                     std::to_string(threads())};
  if (!places.empty()) {
    arguments.insert(arguments.end(), {"--places", fmt::format("{}", fmt::join(places, ","))});
  }
  arguments.emplace_back("--mailbox");
  try {
    return std::make_shared<DraftProcess>(std::move(arguments));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("the draft {}={}: {}", draft.name, draft.model, error.what()));
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

Drafts load_drafts(std::span<const NamedDraft> drafts, ElementType dtype, const std::string& device,
                   const std::vector<std::int64_t>& places) {
  Drafts named;
  for (const NamedDraft& draft : drafts) {
    auto model = [draft, dtype, device, once = std::make_shared<MadeOnce<const Model>>()] {
      return once->get([&] {
        ByteProgress progress("loading " + draft.model);
        return Model::load(draft.checkpoint, dtype, device, memory_to_take(device),
                           [&](std::int64_t done, std::int64_t total) { progress(done, total); });
      });
    };
    auto apart = [draft, dtype, device, places, once = std::make_shared<MadeOnce<DraftProcess>>()](
                     std::int64_t rows, std::int64_t max_tokens, std::int64_t most) {
      return once->get([&] { return start_draft(draft, dtype, device, places); })->open(rows, max_tokens, most);
    };
    named.emplace(draft.name, Draft(config_of(draft.model), std::move(model), std::move(apart)));
  }
  return named;
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
