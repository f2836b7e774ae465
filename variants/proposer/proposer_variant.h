// What the variants share that guess tokens.
#pragma once

#include <string>

#include "variants/registry.h"

namespace decodelab {

/// The most guesses of a round that an arm may ask for.
inline constexpr std::int64_t kMostGuesses = 64;

/// Returns the parameter `tokens`, the most guesses of a row in a round.
ParameterSpec guesses_parameter(std::int64_t default_value);

/// Returns why the proposer `name` cannot be combined with what else is bound; empty if it can.
std::string proposer_conflict(const std::string& name, const EnginePlan& plan);

}  // namespace decodelab
