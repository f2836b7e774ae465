// Turns scopes of phase `batching` into words and back.
#include "reports/statistics/batching_scope.h"

#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace decodelab {
namespace {

struct SampleName {
  BatchingScope::Sample sample;
  std::string_view word;
  std::string_view words;
};

constexpr std::array kSamples{
    SampleName{BatchingScope::Sample::served, "served", "time until all are answered"},
    SampleName{BatchingScope::Sample::first_token, "first-token", "time to first token"},
    SampleName{BatchingScope::Sample::between_tokens, "between-tokens", "time between tokens"},
};

const SampleName& name_of(BatchingScope::Sample sample) { return kSamples[static_cast<std::size_t>(sample)]; }

}  // namespace

std::string to_string(const BatchingScope& scope) {
  const std::string rate = scope.request_rate > 0 ? fmt::format("-at-{}", scope.request_rate) : "";
  return fmt::format("{}{}", name_of(scope.sample).word, rate);
}

BatchingScope batching_scope_from_string(std::string_view text) {
  for (const SampleName& name : kSamples) {
    if (!text.starts_with(name.word)) {
      continue;
    }
    std::string_view rest = text.substr(name.word.size());
    if (rest.empty()) {
      return {.sample = name.sample};
    }
    constexpr std::string_view kAt = "-at-";
    double rate = 0;
    const char* const end = rest.data() + rest.size();
    if (rest.starts_with(kAt)) {
      const auto parsed = std::from_chars(rest.data() + kAt.size(), end, rate);
      if (parsed.ec == std::errc() && parsed.ptr == end && rate > 0 && std::isfinite(rate)) {
        return {.sample = name.sample, .request_rate = rate};
      }
    }
  }
  throw std::invalid_argument(
      fmt::format("the scope '{}' of phase batching is unknown; expected served, first-token or between-tokens, with "
                  "-at-RATE behind it where requests come at a rate",
                  text));
}

std::string sample_words(BatchingScope::Sample sample) { return std::string(name_of(sample).words); }

}  // namespace decodelab
