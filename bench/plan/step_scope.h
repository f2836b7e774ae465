// What a timed step is made of: the words that stand in a cell's `scope`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// Only rows of one scope share a table.
struct StepScope {
  /// The step ends with the last logits; else it includes the choice of tokens and their copy to the host.
  bool forward = false;
  /// Decode: every timed step starts from the cell's length; else the steps follow one another.
  bool at_length = false;
  /// Tokens are read once, when the last step of a visit is issued, not after each step; shows what asynchronous steps
  /// hide.
  bool visible_end = false;
  /// Tokens are drawn at random, or chosen under a penalty, instead of by the plain greedy choice.
  bool warped = false;
  bool operator==(const StepScope&) const = default;
};

/// `step`, `forward`, `step-at-length`, `step-visible-end`, `step-warped`, ....
std::string to_string(const StepScope& scope);
/// Parses a scope. Throws std::invalid_argument, naming the known scopes, for any other text.
StepScope step_scope_from_string(std::string_view text);

/// Returns the scope that cells of a phase get where `asked` was asked for. Completions have scopes of their own; a
/// prefill is neither at_length nor visible_end.
std::string scope_of(std::string_view phase, const StepScope& asked);

}  // namespace decodelab
