// The reference of acceptance: what is guessed must be what is chosen.
#include "engine/sampling/acceptance.h"

#include <numeric>
#include <utility>

namespace decodelab {
namespace {

class MatchAcceptance final : public Acceptance {
 public:
  std::vector<std::vector<std::int64_t>> accept(Round& round) const override {
    const std::vector<std::vector<std::int64_t>>& guesses = round.guesses();
    std::vector<std::vector<std::int64_t>> said(guesses.size());
    std::vector<std::int64_t> rows(guesses.size());
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    for (std::size_t position = 0; !rows.empty(); ++position) {
      const std::vector<std::int64_t> tokens = round.choose(static_cast<std::int64_t>(position), rows);
      std::vector<std::int64_t> right;
      for (std::size_t index = 0; index < rows.size(); ++index) {
        const auto row = static_cast<std::size_t>(rows[index]);
        if (tokens[index] == kNoToken) {
          continue;
        }
        said[row].push_back(tokens[index]);
        if (position < guesses[row].size() && guesses[row][position] == tokens[index]) {
          right.push_back(rows[index]);
        }
      }
      rows = std::move(right);
    }
    return said;
  }
};

}  // namespace

std::unique_ptr<Acceptance> make_match_acceptance() { return std::make_unique<MatchAcceptance>(); }

}  // namespace decodelab
