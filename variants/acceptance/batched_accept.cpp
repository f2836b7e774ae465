// Chooses the tokens of all positions of a round at once, and keeps the guesses that are among them.
#include <memory>
#include <utility>

#include "engine/sampling/acceptance.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class BatchedAcceptance final : public Acceptance {
 public:
  std::vector<std::vector<std::int64_t>> accept(Round& round) const override {
    if (!round.is_plain()) {
      return match_->accept(round);
    }
    const std::vector<std::vector<std::int64_t>>& guesses = round.guesses();
    std::vector<std::vector<std::int64_t>> said = round.choose_all();
    for (std::size_t row = 0; row < said.size(); ++row) {
      std::size_t right = 0;
      while (right < guesses[row].size() && guesses[row][right] == said[row][right]) {
        ++right;
      }
      said[row].resize(right + 1);
    }
    return said;
  }

 private:
  std::unique_ptr<Acceptance> match_ = make_match_acceptance();
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.acceptance.bind("batched-accept", [] { return std::make_unique<BatchedAcceptance>(); });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "batched-accept",
    .summary = "All positions of a round are chosen at once, where the highest logit alone decides.",
    .source = "Medusa (Cai et al. 2024, arXiv:2401.10774), its greedy acceptance",
    .parameters = {},
    .expects = {},
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
