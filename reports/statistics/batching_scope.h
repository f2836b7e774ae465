// What a sample of a cell of phase `batching` is, and how its requests come: the words that stand in the cell's scope.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace decodelab {

/// Each timed step of such a cell serves the same requests once.
struct BatchingScope {
  enum class Sample : std::uint8_t {
    served,          ///< The time until the last request is answered.
    first_token,     ///< From the arrival of a request to its first token, the mean over requests.
    between_tokens,  ///< From one token of a request to its next, the mean over all.
  };
  Sample sample = Sample::served;
  double request_rate = 0;  ///< Requests a second that come at random (Poisson); 0: all come at once.

  bool operator==(const BatchingScope&) const = default;
};

/// Returns `served`, `first-token` or `between-tokens`, with `-at-2.5` where 2.5 requests come a second.
std::string to_string(const BatchingScope& scope);
/// Parses a scope. Throws std::invalid_argument for any other text.
BatchingScope batching_scope_from_string(std::string_view text);
/// Returns what a sample is, for an axis: `time to first token`.
std::string sample_words(BatchingScope::Sample sample);

}  // namespace decodelab
