// What each switch is worth: the arms that differ from one arm by a single variant.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plan/arm.h"

namespace decodelab {

/// Which switches are turned, one at a time.
enum class Ablation : std::uint8_t {
  add_one,        ///< Compares a base with the base plus one variant, for each variant that it does not have.
  leave_one_out,  ///< Compares a top arm with the arm less one variant, for each of its variants.
};

/// The words of `--ablate`, `add-one` and `leave-one-out`. Throws std::invalid_argument with both for any other.
Ablation ablation_from_name(std::string_view name);
/// Returns the arm that is ablated where none is named: the reference for add_one, the fastest preset for
/// leave_one_out.
std::string default_arm(Ablation ablation);

/// Returns `arm`, which the others are compared with, and then an arm for each switch, by the name of the variant,
/// parameters at their defaults.
///
/// Where another variant cannot run `where` without the one that is left out, both are left out, and the label names
/// both: so there is an answer for native without its products too. No arm is dropped for being invalid: where a
/// variant finds its slot taken, or more than one other variant loses what it needs, bind_arm() and
/// unsupported_reason() say why, and so does the row of the arm. A variant of slots that are all `idle` is not turned.
/// Throws std::invalid_argument where there is no switch to turn.
std::vector<Arm> ablated_arms(Ablation ablation, const Arm& arm, const RunsOn& where,
                              const std::set<std::string>& idle);

}  // namespace decodelab
