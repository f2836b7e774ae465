// The names of phases, read.
#include "base/phase.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace decodelab {

static_assert(std::ranges::all_of(kPhaseWords,
                                  [](const PhaseWords& words) { return &words_of(words.phase) == &words; }),
              "each row of kPhaseWords stands at the place of its phase");

Phase phase_from_string(std::string_view name) {
  const auto found =
      std::ranges::find(kPhaseWords, name, [](const PhaseWords& words) { return std::string_view(words.name); });
  if (found != kPhaseWords.end()) {
    return found->phase;
  }
  std::string known;
  for (const PhaseWords& words : kPhaseWords) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", words.name);
  }
  throw std::invalid_argument(fmt::format("the phase '{}' is unknown; expected one of {}", name, known));
}

}  // namespace decodelab
