// Limits of the variants that guess tokens.
#include "variants/proposer/proposer_variant.h"

#include <fmt/format.h>

namespace decodelab {

ParameterSpec guesses_parameter(std::int64_t default_value) {
  return {.name = "tokens",
          .default_value = default_value,
          .minimum = 1,
          .maximum = kMostGuesses,
          .help = "the most guesses of a row in a round"};
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
