// What proves that a way of finding the most probable tokens ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "variants/registry.h"

namespace decodelab {

/// An operator is called so often in each step whose tokens have their most probable neighbours told.
inline std::vector<Expectation> operator_calls(const CountedSteps& counted, const std::string& counter,
                                               std::int64_t of_a_step) {
  if (counted.details.generated.top == 0 || counted.sampled) {
    return {};  // Nobody asks, or warpers may call it too.
  }
  return {{counter, counted.steps * of_a_step, counted.details.prompt.top > 0}};
}

}  // namespace decodelab
