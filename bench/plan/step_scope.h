// What a timed step is made of: the words that stand in a cell's `scope`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/phase.h"

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
  /// A step is what a client of a server sees: a decode step the time between tokens of streams, a prefill the time to
  /// the first, a completion the time to the last. Arms in this process, which nobody asks over a network, run their
  /// normal step.
  bool serving = false;
  /// Tokens are drawn at random, or chosen under a penalty, instead of by the plain greedy choice.
  bool warped = false;
  /// Rows of each prompt: a cell's batch counts prompts.
  std::int64_t samples = 1;
  bool operator==(const StepScope&) const = default;
};

/// `step`, `forward`, `step-at-length`, `step-visible-end`, `step-warped`, `serving`, ..., with `-samples-4` where each
/// prompt has four rows.
std::string to_string(const StepScope& scope);
/// Parses a scope. Throws std::invalid_argument, naming the known scopes, for any other text.
StepScope step_scope_from_string(std::string_view text);

/// Returns the scope that cells of a phase get where `asked` was asked for. Completions have scopes of their own, but
/// where they are `serving` too; a prefill is neither at_length nor visible_end, and rows of a decode step have no
/// prompt that they could share.
std::string scope_of(Phase phase, const StepScope& asked);

/// Returns the scope of a cell: of a completion no more than its samples and whether it is serving, of a batch that
/// serves requests none.
StepScope scope_of_cell(Phase phase, std::string_view scope);

}  // namespace decodelab
