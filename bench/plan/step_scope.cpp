// Turns scopes into words and back.
#include "bench/plan/step_scope.h"

#include <array>
#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr std::array kScopes{StepScope{},
                             StepScope{.forward = true},
                             StepScope{.at_length = true},
                             StepScope{.forward = true, .at_length = true},
                             StepScope{.visible_end = true},
                             StepScope{.warped = true},
                             StepScope{.at_length = true, .warped = true}};

}  // namespace

std::string to_string(const StepScope& scope) {
  return fmt::format("{}{}{}{}", scope.forward ? "forward" : "step", scope.at_length ? "-at-length" : "",
                     scope.visible_end ? "-visible-end" : "", scope.warped ? "-warped" : "");
}

StepScope step_scope_from_string(std::string_view text) {
  std::string known;
  for (const StepScope& scope : kScopes) {
    if (to_string(scope) == text) {
      return scope;
    }
    known += (known.empty() ? "" : ", ") + to_string(scope);
  }
  throw std::invalid_argument(fmt::format("the scope '{}' is unknown; expected one of {}", text, known));
}

std::string scope_of(std::string_view phase, const StepScope& asked) {
  if (phase == "generate") {
    return asked.warped ? "generate-warped" : "generate";
  }
  StepScope scope = asked;
  if (phase == "prefill") {
    scope.at_length = false;
    scope.visible_end = false;
  }
  return to_string(scope);
}

}  // namespace decodelab
