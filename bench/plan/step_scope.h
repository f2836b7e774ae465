// What a timed step is made of: the words that stand in a cell's `scope`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// Only rows of one scope share a table.
struct StepScope {
  bool forward = false;  ///< Ids in, last logits out; else the choice too, and its tokens on the host.
  bool at_length =
      false;  ///< Decode: every timed step starts from the cell's length; else the steps follow one another.
  bool visible_end =
      false;  ///< Tokens are read when the last step of a visit is issued, not after each: what running ahead hides.
  bool warped =
      false;  ///< Tokens are drawn at random, or a penalty is laid on them, instead of the plain greedy choice.
  bool operator==(const StepScope&) const = default;
};

/// `step`, `forward`, `step-at-length`, `step-visible-end`, `step-warped`, ....
std::string to_string(const StepScope& scope);
/// Throws std::invalid_argument that names the scopes there are.
StepScope step_scope_from_string(std::string_view text);

/// That of a phase, as asked for: completions have one of their own, and a prefill has no length to go back to.
std::string scope_of(std::string_view phase, const StepScope& asked);

}  // namespace decodelab
