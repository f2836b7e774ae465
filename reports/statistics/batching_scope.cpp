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
    SampleName{BatchingScope::Sample::good, "good", "time per request within its limits"},
};

const SampleName& name_of(BatchingScope::Sample sample) { return kSamples[static_cast<std::size_t>(sample)]; }

/// Takes `-WORDnumber` from the beginning of `rest`; returns 0 where there is none, or no number above 0.
double take_number(std::string_view& rest, std::string_view word) {
  double number = 0;
  if (!rest.starts_with(word)) {
    return 0;
  }
  const char* const end = rest.data() + rest.size();
  const auto parsed = std::from_chars(rest.data() + word.size(), end, number);
  if (parsed.ec != std::errc() || !(number > 0) || !std::isfinite(number)) {
    return 0;
  }
  rest = {parsed.ptr, end};
  return number;
}

constexpr std::string_view kAt = "-at-";
constexpr std::string_view kTtft = "-ttft";
constexpr std::string_view kTpot = "-tpot";

}  // namespace

std::string to_string(const BatchingScope& scope) {
  std::string text(name_of(scope.sample).word);
  for (const auto& [word, number] : {std::pair(kTtft, scope.limits.ttft_ms), std::pair(kTpot, scope.limits.tpot_ms),
                                     std::pair(kAt, scope.request_rate)}) {
    text += number > 0 ? fmt::format("{}{}", word, number) : "";
  }
  return text;
}

BatchingScope batching_scope_from_string(std::string_view text) {
  for (const SampleName& name : kSamples) {
    if (!text.starts_with(name.word)) {
      continue;
    }
    BatchingScope scope{.sample = name.sample};
    std::string_view rest = text.substr(name.word.size());
    if (name.sample == BatchingScope::Sample::good) {
      scope.limits = {.ttft_ms = take_number(rest, kTtft), .tpot_ms = take_number(rest, kTpot)};
    }
    scope.request_rate = take_number(rest, kAt);
    if (rest.empty() && scope.limits.any() == (name.sample == BatchingScope::Sample::good)) {
      return scope;
    }
  }
  throw std::invalid_argument(
      fmt::format("the scope '{}' of phase batching is unknown; expected served, first-token, between-tokens or "
                  "good-ttftMS-tpotMS, with -at-RATE behind it where requests come at a rate",
                  text));
}

std::string sample_words(BatchingScope::Sample sample) { return std::string(name_of(sample).words); }

std::string limits_words(const RequestLimits& limits) {
  const std::string first = limits.ttft_ms > 0 ? fmt::format("TTFT {} ms", limits.ttft_ms) : "";
  const std::string later = limits.tpot_ms > 0 ? fmt::format("TPOT {} ms", limits.tpot_ms) : "";
  return first + (first.empty() || later.empty() ? "" : ", ") + later;
}

}  // namespace decodelab
