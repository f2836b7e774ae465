// Turns scopes into words and back.
#include "bench/plan/step_scope.h"

#include <array>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr std::array kScopes{StepScope{},
                             StepScope{.forward = true},
                             StepScope{.at_length = true},
                             StepScope{.forward = true, .at_length = true},
                             StepScope{.visible_end = true},
                             StepScope{.serving = true},
                             StepScope{.warped = true},
                             StepScope{.at_length = true, .warped = true}};

constexpr std::string_view kStep = "step";
constexpr std::string_view kForward = "forward";
constexpr std::string_view kServing = "serving";
constexpr std::string_view kSamples = "-samples-";

std::string samples_word(std::int64_t samples) { return samples == 1 ? "" : fmt::format("{}{}", kSamples, samples); }

/// Takes `-samples-N` from the end of a scope, and returns N; 1 where it is not there.
std::int64_t take_samples(std::string_view& text) {
  const std::size_t at = text.rfind(kSamples);
  std::int64_t samples = 1;
  if (at == std::string_view::npos) {
    return samples;
  }
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + at + kSamples.size(), end, samples);
  if (parsed.ec != std::errc() || parsed.ptr != end || samples < 2) {
    return 1;  // What follows is no number, and the whole is no scope.
  }
  text = text.substr(0, at);
  return samples;
}

}  // namespace

std::string to_string(const StepScope& scope) {
  return fmt::format("{}{}{}{}{}",
                     scope.serving   ? kServing
                     : scope.forward ? kForward
                                     : kStep,
                     scope.at_length ? "-at-length" : "", scope.visible_end ? "-visible-end" : "",
                     scope.warped ? "-warped" : "", samples_word(scope.samples));
}

StepScope step_scope_from_string(std::string_view text) {
  std::string_view words = text;
  const std::int64_t samples = take_samples(words);
  std::string known;
  for (StepScope scope : kScopes) {
    if (to_string(scope) == words) {
      scope.samples = samples;
      return scope;
    }
    known += (known.empty() ? "" : ", ") + to_string(scope);
  }
  throw std::invalid_argument(fmt::format("the scope '{}' is unknown; expected one of {}", text, known));
}

std::string scope_of(Phase phase, const StepScope& asked) {
  if (phase == Phase::generate && !asked.serving) {
    return (asked.warped ? "generate-warped" : "generate") + samples_word(asked.samples);
  }
  if (phase == Phase::continuation) {
    return asked.warped ? "continue-warped" : "continue";
  }
  StepScope scope = asked;
  scope.samples = begins_with_keys(phase) ? 1 : asked.samples;
  if (phase == Phase::prefill) {
    scope.at_length = false;
    scope.visible_end = false;
  }
  return to_string(scope);
}

StepScope scope_of_cell(Phase phase, std::string_view scope) {
  if (phase == Phase::generate) {
    const std::int64_t samples = take_samples(scope);
    return {.serving = scope == kServing, .samples = samples};
  }
  return phase == Phase::batching || phase == Phase::continuation ? StepScope{} : step_scope_from_string(scope);
}

}  // namespace decodelab
