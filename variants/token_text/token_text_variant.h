// What proves how often the tokenizer was called for the texts of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "variants/registry.h"

namespace decodelab {

/// The tokenizer is called so often in each step whose tokens' texts are wanted, but for those of prompts.
inline std::vector<Expectation> tokenizer_calls(const CountedSteps& counted, std::int64_t of_a_step) {
  if (!counted.details.text || counted.details.generated.top == 0 || counted.details.prompt.any()) {
    return {};
  }
  return {{"tokenizer_calls", counted.steps * of_a_step}};
}

}  // namespace decodelab
