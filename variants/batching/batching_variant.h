// What the variants of the slot `batching` share.
#pragma once

#include <string>
#include <vector>

#include "variants/registry.h"

namespace decodelab {

/// Returns the parameter `chunk` of a variant whose rows decode while prompts are fed.
inline ParameterSpec chunk_parameter() {
  constexpr std::int64_t kMostTokens = 1 << 20;
  return {.name = "chunk",
          .default_value = 0,
          .minimum = 0,
          .maximum = kMostTokens,
          .help = "prompt tokens that a row is fed between two decode steps; 0: all"};
}

/// Returns what proves that requests beyond the first batch did `counter`; nothing where none had to, or in another
/// phase.
inline std::vector<Expectation> expects_of_later_requests(const CountedSteps& counted, const std::string& counter,
                                                          bool every_one) {
  const std::int64_t later = counted.requests - counted.batch_size;
  if (counted.phase != Phase::batching || !counted.at_once || later < 1) {
    return {};
  }
  return {{.counter = counter, .value = every_one ? later * counted.steps : 1, .or_more = !every_one}};
}

}  // namespace decodelab
