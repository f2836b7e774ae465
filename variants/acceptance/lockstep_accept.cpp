// Keeps as many guesses of each row as of the row with the fewest right ones.
#include <algorithm>
#include <numeric>

#include "engine/sampling/acceptance.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class LockstepAcceptance final : public Acceptance {
 public:
  std::vector<std::vector<std::int64_t>> accept(Round& round) const override {
    const std::vector<std::vector<std::int64_t>>& guesses = round.guesses();
    std::vector<std::vector<std::int64_t>> said(guesses.size());
    std::vector<std::int64_t> rows(guesses.size());
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    for (std::size_t position = 0;; ++position) {
      const std::vector<std::int64_t> tokens = round.choose(static_cast<std::int64_t>(position), rows);
      bool all_right = true;
      for (std::size_t row = 0; row < said.size(); ++row) {
        if (tokens[row] == kNoToken) {
          all_right = false;
          continue;
        }
        said[row].push_back(tokens[row]);
        all_right = all_right && position < guesses[row].size() && guesses[row][position] == tokens[row];
      }
      if (!all_right) {
        return said;
      }
    }
  }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.acceptance.bind("lockstep-accept", [] { return std::make_unique<LockstepAcceptance>(); });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "lockstep-accept",
    .summary = "All rows keep as many guesses as the row with the fewest right ones: what it costs to keep a batch of "
               "one length.",
    .source = "a control arm; engines whose batch has one length did it (an early text-generation-inference)",
    .parameters = {},
    .expects = {},
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
