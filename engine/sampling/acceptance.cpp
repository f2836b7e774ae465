// The reference of acceptance: what is guessed must be what is chosen.
#include "engine/sampling/acceptance.h"

#include <numeric>
#include <utility>

namespace decodelab {
namespace {

class MatchAcceptance final : public Acceptance {
 public:
  std::vector<std::vector<std::int64_t>> accept(Round& round) const override {
    std::vector<std::vector<std::int64_t>> said(round.guesses().size());
    std::vector<std::int64_t> rows(said.size());
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    for (std::int64_t position = 0; !rows.empty(); ++position) {
      rows = add_said(round, position, rows, round.choose(position, rows), said);
    }
    return said;
  }
};

}  // namespace

std::vector<std::int64_t> add_said(const Round& round, std::int64_t position, const std::vector<std::int64_t>& rows,
                                   const std::vector<std::int64_t>& tokens,
                                   std::vector<std::vector<std::int64_t>>& said) {
  std::vector<std::int64_t> go_on;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (tokens[index] == kNoToken) {
      continue;
    }
    const auto row = static_cast<std::size_t>(rows[index]);
    said[row].push_back(tokens[index]);
    const std::vector<std::int64_t>& guesses = round.guesses()[row];
    if (position < std::ssize(guesses) && guesses[static_cast<std::size_t>(position)] == tokens[index]) {
      go_on.push_back(rows[index]);
    }
  }
  return go_on;
}

std::unique_ptr<Acceptance> make_match_acceptance() { return std::make_unique<MatchAcceptance>(); }

}  // namespace decodelab
