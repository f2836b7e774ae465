// What a sample of a cell of phase `batching` is, and how its requests come: the words that stand in the cell's scope.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace decodelab {

/// What a request has to be answered within so that it counts, in milliseconds; 0: that does not matter. The names are
/// those of other tools: time to first token, and the mean time per token after it.
struct RequestLimits {
  double ttft_ms = 0;
  double tpot_ms = 0;

  bool any() const { return ttft_ms > 0 || tpot_ms > 0; }
  bool operator==(const RequestLimits&) const = default;
};

/// Each timed step of such a cell serves the same requests once.
struct BatchingScope {
  enum class Sample : std::uint8_t {
    served,          ///< The time until the last request is answered.
    first_token,     ///< From the arrival of a request to its first token, the mean over requests.
    between_tokens,  ///< From one token of a request to its next, the mean over all.
    good,            ///< The time until the last is answered over the number of requests within their limits.
  };
  Sample sample = Sample::served;
  double request_rate = 0;  ///< Requests a second that come at random (Poisson); 0: all come at once.
  RequestLimits limits{};   ///< Of sample `good`, which has one at least.

  bool operator==(const BatchingScope&) const = default;
};

/// Returns `served`, `first-token`, `between-tokens`, or `good-ttft200-tpot50` with one or both of these limits; with
/// `-at-2.5` behind it where 2.5 requests come a second.
std::string to_string(const BatchingScope& scope);
/// Parses a scope. Throws std::invalid_argument for any other text.
BatchingScope batching_scope_from_string(std::string_view text);
/// Returns what a sample is, for an axis: `time to first token`.
std::string sample_words(BatchingScope::Sample sample);
/// Returns limits for a heading: `TTFT 200 ms, TPOT 50 ms`.
std::string limits_words(const RequestLimits& limits);

}  // namespace decodelab
