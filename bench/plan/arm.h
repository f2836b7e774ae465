// The grammar of arms: a preset with variants added or removed, and the engine plan that it stands for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plan/arm_request.h"
#include "variants/registry.h"

namespace decodelab {

/// The variants of an arm with the parameters that were set, by name.
using VariantSet = std::map<std::string, ParameterValues>;

/// What a sweep compares. Two arms are the same when their labels are.
struct Arm {
  /// The canonical form: the preset, then added variants, then removed ones, each sorted, parameters at their defaults
  /// left out, and then to_string() of the request.
  std::string label;
  VariantSet variants;
  ArmRequest request{};
  std::int64_t slow_ns = 0;  ///< Nanoseconds by which each step is made longer; see kSlowPrefix.
};

/// Prefix of an arm that is measured a second time, with workers and buffers of its own; its true ratio to the first is
/// 1.
inline constexpr std::string_view kNullPrefix = "null:";

/// Prefix of an arm, with a number of nanoseconds: `slow-25000:causal` is causal with a wait of 25 us in every step, so
/// that anybody can see what a slow-down of known size looks like.
inline constexpr std::string_view kSlowPrefix = "slow-";

/// Parses `[null:|slow-NS:]preset[,+variant[:parameter=value]...][,-variant]...[@setting=value]...`, one shell word;
/// parse_arm_request() has the settings.
///
/// A variant that the preset has may be added again to change its parameters. Throws std::invalid_argument in one
/// sentence for an unknown preset or variant (with the nearest names), an unknown parameter or value, a variant removed
/// that is not there, and two variants on one slot.
Arm parse_arm(std::string_view text);

/// Parses like parse_arm(), and throws for an arm with settings behind '@', naming `why_not`: where arms are asked for
/// the same, or requests have flags of their own.
Arm parse_plain_arm(std::string_view text, std::string_view why_not);

/// Parses like parse_arm(), but also accepts variants that cannot be bound together: such an arm has a label and a row,
/// and cannot run.
Arm read_arm(std::string_view text);

/// Returns the text of an arm with `words` behind its variants, before its request.
std::string with_words(std::string_view label, std::string_view words);

/// Returns `base` with the arm's variants bound. Throws std::invalid_argument for two variants on one slot, and for two
/// that exclude each other.
EnginePlan bind_arm(const Arm& arm, EnginePlan base);

/// Returns the fidelity of the arm's least exact variant, and what one of them is held to.
Fidelity fidelity_of(const Arm& arm);

/// Returns in one sentence why the arm cannot run on `where`, or anywhere; empty where it can.
std::string unsupported_reason(const Arm& arm, RunsOn where);

}  // namespace decodelab
