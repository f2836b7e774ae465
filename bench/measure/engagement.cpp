// Compares counters with the expectations of variants.
#include "bench/measure/engagement.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace decodelab {
namespace {

/// Whether a variant's counters mean anything in the counted steps.
bool counts(const Variant& variant, const CountedSteps& counted) {
  if (counted.phase == Phase::continuation) {
    // A pass over guesses has shapes of its own.
    static constexpr std::array<std::string_view, 4> kOfRounds{"proposer", "draft_length", "verify_attention",
                                                               "acceptance"};
    return variant.expects && std::ranges::all_of(slots_bound_by(variant), [](const std::string& slot) {
             return std::ranges::find(kOfRounds, slot) != kOfRounds.end();
           });
  }
  if (counted.phase != Phase::batching && counted.samples == 1) {
    return static_cast<bool>(variant.expects);
  }
  // Steps of a batch that serves requests, and of prompts that become several rows, have shapes of their own.
  const std::string slot = counted.phase == Phase::batching ? "batching" : "fork";
  return variant.expects && slots_bound_by(variant) == std::vector{slot};
}

/// Whether a variant touches nothing but what comes after the logits.
bool only_chooses(const Variant& variant) {
  static constexpr std::array<std::string_view, 6> kAfterLogits{"token_choice",  "read_back",  "rng",
                                                                "token_details", "top_tokens", "token_text"};
  return std::ranges::all_of(slots_bound_by(variant), [](const std::string& slot) {
    return std::ranges::find(kAfterLogits, slot) != kAfterLogits.end();
  });
}

}  // namespace

Engagement check_engagement(const Arm& arm, const CountedSteps& counted, const Counters& counters) {
  std::vector<std::pair<std::string, Expectation>> all;
  std::set<std::string> unknown;
  for (const auto& [name, parameters] : arm.variants) {
    const Variant& variant = registered_variants().at(name);
    if (!counts(variant, counted) || (!counted.chosen && only_chooses(variant))) {
      continue;
    }
    for (Expectation& expected : variant.expects(counted, complete_parameters(variant, parameters))) {
      if (!expected.value) {
        unknown.insert(expected.counter);
      }
      all.emplace_back(name, std::move(expected));
    }
  }
  Engagement engagement;
  for (const auto& [name, expected] : all) {
    if (unknown.contains(expected.counter)) {
      continue;
    }
    const auto found = counters.find(expected.counter);
    const std::int64_t value = found == counters.end() ? 0 : found->second;
    if (expected.or_more ? value < *expected.value : value != *expected.value) {
      return {.engaged = false,
              .missing = fmt::format("{} did not run: {} should be {}{} over {} counted steps and is {}", name,
                                     expected.counter, *expected.value, expected.or_more ? " or more" : "",
                                     counted.steps, value)};
    }
    engagement.engaged = true;
  }
  return engagement;
}

}  // namespace decodelab
