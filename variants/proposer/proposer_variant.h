// What the variants share that guess tokens.
#pragma once

#include <string>
#include <vector>

#include "variants/registry.h"

namespace decodelab {

/// The most guesses of a round that an arm may ask for.
inline constexpr std::int64_t kMostGuesses = 64;

/// Returns the parameter `tokens`, the most guesses of a row in a round.
ParameterSpec guesses_parameter(std::int64_t default_value);
/// Returns the parameter `draft`, which names the model that guesses.
ParameterSpec draft_parameter();
/// Returns the parameter `shared`: 1 where the ranks that share the model share what guesses too.
ParameterSpec shared_parameter();

/// Returns what shows that guesses were checked, in a step that goes on by several tokens; `always`: there is a guess
/// wherever one may be.
std::vector<Expectation> expected_rounds(const CountedSteps& counted, bool always);

/// Returns why the draft that the arm's plan names cannot guess there; empty if it can.
std::string reason_against_draft(const RunsOn& where);

/// Returns why the proposer `name` cannot be combined with what else is bound; empty if it can.
std::string proposer_conflict(const std::string& name, const EnginePlan& plan);

}  // namespace decodelab
