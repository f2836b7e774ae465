// What the counters say of prompts that begin with what a prefix store holds.
#pragma once

#include <vector>

#include "variants/registry.h"

namespace decodelab {

/// Returns the prompts of a counted step that look for themselves: those that are prefilled for each of their samples
/// do so once a sample.
inline std::int64_t prompts_that_look(const CountedSteps& counted) {
  return counted.batch_size * (counted.plan.fork.value() == ForkWay::prefill_each ? counted.samples : 1);
}

/// Returns what the counters say of lookups, and of tokens that went through no layer.
inline std::vector<Expectation> prefix_hits(const CountedSteps& counted) {
  if (!counted.stored_tokens) {
    return {};
  }
  if (counted.phase == Phase::batching) {  // How many prompts find one, is a question of when they come.
    return {{"prefix_tokens", *counted.stored_tokens > 0 ? 1 : 0, true}};
  }
  if (counted.phase != Phase::prefill) {
    return {};
  }
  const std::int64_t prompts = counted.steps * prompts_that_look(counted);
  return {{"prefix_lookups", prompts}, {"prefix_tokens", prompts * *counted.stored_tokens}};
}

}  // namespace decodelab
