// What each switch is worth: the arms that differ from one arm by a single variant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plan/arm.h"

namespace decodelab {

/// Which switches are turned, one at a time.
enum class Ablation : std::uint8_t {
  add_one,        ///< On: a base, and the base with each variant that it does not have.
  leave_one_out,  ///< Off: a top arm, and it without each of its variants.
};

/// The words of `--ablate`, `add-one` and `leave-one-out`. Throws std::invalid_argument with both for any other.
Ablation ablation_from_name(std::string_view name);
/// The arm that is ablated where none is named: the reference, or the fastest preset.
std::string default_arm(Ablation ablation);

/// `arm`, which the others are compared with, and then an arm for each switch, by the name of the variant, parameters
/// at their defaults.
///
/// A variant that is left out takes the one with it that cannot run `where` without it, and the label names both: what
/// native is worth without its products is a question all the same. None is left out for being invalid: where a variant
/// finds its slot taken, or leaves more than one other without what it needs, bind_arm() and unsupported_reason() say
/// why, and so does the arm's row. Throws std::invalid_argument where there is no switch to turn.
std::vector<Arm> ablated_arms(Ablation ablation, const Arm& arm, const RunsOn& where);

}  // namespace decodelab
