// Turns the switches of an arm one at a time.
#include "bench/plan/ablation.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr std::string_view kAddOne = "add-one";
constexpr std::string_view kLeaveOneOut = "leave-one-out";

/// Returns the arm without the variant; where one other variant cannot run without it, without both.
Arm without(const Arm& arm, const std::string& name, const RunsOn& where) {
  Arm alone = read_arm(with_words(arm.label, ",-" + name));
  if (unsupported_reason(alone, where).empty() || !unsupported_reason(arm, where).empty()) {
    return alone;
  }
  for (const auto& [other, parameters] : alone.variants) {
    Arm both = read_arm(with_words(alone.label, ",-" + other));
    if (unsupported_reason(both, where).empty()) {
      return both;
    }
  }
  return alone;
}

}  // namespace

Ablation ablation_from_name(std::string_view name) {
  if (name == kAddOne) {
    return Ablation::add_one;
  }
  if (name == kLeaveOneOut) {
    return Ablation::leave_one_out;
  }
  throw std::invalid_argument(fmt::format("--ablate: '{}' is unknown; expected {} or {}", name, kAddOne, kLeaveOneOut));
}

std::string default_arm(Ablation ablation) { return ablation == Ablation::add_one ? "causal" : "native"; }

std::vector<Arm> ablated_arms(Ablation ablation, const Arm& arm, const RunsOn& where,
                              const std::set<std::string>& idle) {
  std::vector<Arm> arms{arm};
  for (const auto& [name, variant] : registered_variants()) {
    const bool held = arm.variants.contains(name);
    if (std::ranges::all_of(slots_bound_by(variant), [&](const std::string& slot) { return idle.contains(slot); })) {
      continue;
    }
    if (ablation == Ablation::add_one && !held) {
      arms.push_back(read_arm(with_words(arm.label, ",+" + name)));
    } else if (ablation == Ablation::leave_one_out && held) {
      Arm rest = without(arm, name, where);
      // Two that need each other leave together, once.
      if (std::ranges::find(arms, rest.label, &Arm::label) == arms.end()) {
        arms.push_back(std::move(rest));
      }
    }
  }
  if (arms.size() == 1) {
    throw std::invalid_argument(fmt::format("--ablate: the arm {} has {}", arm.label,
                                            ablation == Ablation::add_one
                                                ? "every variant already, and none can be added"
                                                : "no variant, and none can be left out; name another with --arm"));
  }
  return arms;
}

}  // namespace decodelab
