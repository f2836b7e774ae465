// The names of phases, read.
#include "base/phase.h"

#include <algorithm>
#include <ranges>
#include <stdexcept>

#include <fmt/ranges.h>

namespace decodelab {

static_assert(std::ranges::all_of(kPhaseWords,
                                  [](const PhaseWords& words) { return &words_of(words.phase) == &words; }),
              "each row of kPhaseWords stands at the place of its phase");

std::string phase_names() {
  return fmt::format("{}", fmt::join(kPhaseWords | std::views::transform(&PhaseWords::name), ", "));
}

Phase phase_from_string(std::string_view name) {
  const auto found =
      std::ranges::find(kPhaseWords, name, [](const PhaseWords& words) { return std::string_view(words.name); });
  if (found != kPhaseWords.end()) {
    return found->phase;
  }
  throw std::invalid_argument(fmt::format("the phase '{}' is unknown; expected one of {}", name, phase_names()));
}

}  // namespace decodelab
