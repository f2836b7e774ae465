// What an arm asks of each row beside its prompt: the part of its name behind '@'.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/phase.h"
#include "engine/masks/token_rules.h"
#include "engine/sampling/token_details.h"

namespace decodelab {

/// Which prompts begin alike, where a prefix store looks for that: the workloads that prefix caches are known by.
enum class Beginnings : std::uint8_t {
  shared,    ///< All of them: one long system prompt before every question.
  few_shot,  ///< All have an instruction, a quarter of the beginning, and then one of four sets of examples.
  turns,     ///< Each is a turn of a conversation of its own: it begins like the prompt `batch` places before it.
};

/// Settings of the requests in an arm's cells. Two arms of one cell may differ in them, so that what a request costs is
/// paired like what a variant costs; an arm is compared with the reference under the same settings.
struct ArmRequest {
  /// `@regex=R`: completions match this pattern, which compile_pattern() reads, and none of them ends. It should be one
  /// that can go on for as many tokens as a cell runs.
  std::string regex{};
  /// `@samples=N`: rows of each prompt, in phases prefill and generate.
  std::int64_t samples = 1;
  /// `@prefix=S`: a prefix store holds this share of each prompt's tokens, from 0 to below 1, before a prefill begins;
  /// in phase batching the store is empty at first. Empty: there is no store.
  std::optional<double> prefix{};
  /// `@prefix=S:KIND`: says which prompts begin alike for that share.
  Beginnings beginnings = Beginnings::shared;

  /// `@top-tokens=N`: each chosen token comes with its log-probability, its rank and the N most probable tokens.
  std::int64_t top_tokens = 0;
  /// `@top-tokens=N:text`: these tokens have their texts, too.
  bool text = false;
  /// `@prompt-top-tokens=N`: each token of the prompt but the first comes with the same.
  std::int64_t prompt_top_tokens = 0;

  /// `@typical-p=P`: tokens are drawn at random, those that typical-p keeps; what else says how they are drawn is that
  /// of the sweep.
  double typical_p = 1;

  DetailsRequest details() const;
  /// Returns the rules of each row's completion.
  TokenRules rules() const { return {.regex = regex, .forbid_eos = !regex.empty()}; }
  bool any() const { return *this != ArmRequest{}; }
  /// Returns how many tokens of a prompt are its prefix: one less than all at most.
  std::int64_t prefix_tokens(std::int64_t prompt_tokens) const;
  bool operator==(const ArmRequest&) const = default;
};

/// Parses `@name=value...`, in any order; in a value, '@' is written twice. Empty: the defaults. Throws
/// std::invalid_argument in one sentence for an unknown name (with those that are known), one that is set twice, a
/// value outside of its limits, and a pattern that compile_pattern() refuses.
ArmRequest parse_arm_request(std::string_view text);

/// Lets prompts begin alike as the request says. `rows` is the batch of the cell: as many prompts stand beside each
/// other in a prefill, and as many conversations are held in phase batching.
void begin_alike(const ArmRequest& request, std::int64_t rows, std::vector<std::vector<std::int64_t>>& prompts);

/// Returns the canonical form, with settings at their defaults left out; parse_arm_request() reads it.
std::string to_string(const ArmRequest& request);

/// Returns the part of an arm's label that its request stands in; empty where it asks nothing.
std::string_view request_part(std::string_view label);

/// Returns the label without its request: arms that have it in common have one plan.
std::string_view variants_part(std::string_view label);

/// Returns the rows of each prompt of a cell: those that the arm asks for, else those of the cell's scope.
std::int64_t samples_of(const ArmRequest& request, Phase phase, std::string_view scope);

/// Returns in one sentence why cells of a phase have no use for the request; empty where they have.
std::string unsupported_reason(const ArmRequest& request, Phase phase);

}  // namespace decodelab
