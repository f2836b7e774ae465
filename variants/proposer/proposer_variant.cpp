// Limits of the variants that guess tokens.
#include "variants/proposer/proposer_variant.h"

#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/checkpoint/rank_part.h"
#include "engine/drafts.h"

namespace decodelab {

ParameterSpec guesses_parameter(std::int64_t default_value) {
  return {.name = "tokens",
          .default_value = default_value,
          .minimum = 1,
          .maximum = kMostGuesses,
          .help = "the most guesses of a row in a round"};
}

ParameterSpec draft_parameter() {
  return {.name = "draft", .help = "the draft's name; not needed where one is given", .default_word = ""};
}

ParameterSpec shared_parameter() {
  return {.name = "shared",
          .default_value = 0,
          .minimum = 0,
          .maximum = 1,
          .help = "1: the ranks that share the model share what guesses too; 0: the first rank has all of it"};
}

std::vector<Expectation> expected_rounds(const CountedSteps& counted, bool always) {
  if (counted.phase != Phase::continuation || counted.tokens < 2) {
    return {};
  }
  std::vector<Expectation> expected{{.counter = "rounds", .value = counted.steps, .or_more = true}};
  if (always && counted.plan.draft_length.variant().empty()) {
    expected.push_back({.counter = "proposed_tokens", .value = counted.steps * counted.batch_size, .or_more = true});
  }
  return expected;
}

std::string reason_against_draft(const RunsOn& where) {
  const ProposerRule& rule = where.plan->proposer.value();
  if (rule.apart && *rule.draft == kSelfDraft) {
    return "a draft in a process of its own is one that --draft NAME=MODEL names";
  }
  if (rule.shared && where.plan->communicator.value().ranks == 1) {
    return "shared=1 needs ranks that share the model: add shm-ranks or thread-ranks";
  }
  try {
    const bool own = !rule.draft || *rule.draft == kSelfDraft;
    const ModelConfig draft =
        own ? where.config
            : draft_named(*rule.draft, where.drafts == nullptr ? std::map<std::string, ModelConfig>() : *where.drafts);
    check_draft(where.config, draft);
    if (rule.shared) {
      return reason_against_ranks(draft, where.plan->communicator.value().ranks);
    }
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::string proposer_conflict(const std::string& name, const EnginePlan& plan) {
  if (plan.kv_growth.variant() == "no-cache") {
    return fmt::format("{} takes wrong guesses back out of the cache, and no-cache keeps none: remove one of the two",
                       name);
  }
  if (plan.read_back.value() == ReadBack::async) {
    return fmt::format(
        "{} reads the tokens of a round before it guesses on, and {} reads them later: remove one of the "
        "two",
        name, plan.read_back.variant());
  }
  return "";
}

}  // namespace decodelab
