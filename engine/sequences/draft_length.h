// How many tokens are guessed in a round of speculation: the interface of a slot.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/layers/row_part.h"

namespace decodelab {

/// Says how many guesses of each row a round checks. More are worth their time where most are right and a pass over
/// them costs little; it changes no token that is said.
class DraftLength : public RowPart {
 public:
  /// What became of the guesses of one row.
  struct Outcome {
    std::int64_t proposed = 0;
    std::int64_t accepted = 0;
  };

  /// Returns how many guesses of each row are wanted, each at most most[row].
  virtual std::vector<std::int64_t> wanted(std::span<const std::int64_t> most) = 0;
  /// Tells what became of the guesses of a round, and how many nanoseconds it took to make and to check them.
  virtual void note(std::span<const Outcome> rows, std::int64_t propose_ns, std::int64_t verify_ns) = 0;

  void truncate(std::int64_t, std::int64_t) override {}
};

}  // namespace decodelab
