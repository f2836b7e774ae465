// What the timed steps of a cell are where a server computes them: the times of tokens of streams.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/measure/request_times.h"
#include "bench/measure/serving/completion_server.h"

namespace decodelab {

/// Steps that were timed; all steps together took `wall_ns`.
struct ServedSteps {
  std::vector<std::int64_t> samples_ns;
  std::int64_t wall_ns = 0;
};

/// Returns the prompt with its ids in another order, so that no earlier prompt of a server begins like it: rotated by
/// `number`, and from the second turn on read with strides too, L * phi(L) different ones of a prompt of L ids. Number
/// 0 is the prompt itself.
std::vector<std::int64_t> fresh_prompt(std::span<const std::int64_t> prompt, std::int64_t number);

/// Returns the time from the start of a round to the first token of the last stream: the time to first token of a
/// batch.
std::int64_t first_token_ns(const StreamRound& round);

/// Returns the time from the start of a round to the last token of all streams.
std::int64_t whole_ns(const StreamRound& round);

/// Returns at most `steps` steps of streams that run beside each other. A step begins where the one before it ends, the
/// first where every stream has its first token; it ends when every stream has one token more than it had then. There
/// are none where a stream has ended by that time.
ServedSteps steps_between_tokens(const StreamRound& round, std::int64_t steps);

/// Returns the times of the streams of a round as requests that came `after_ns` its start; empty: all at its start.
std::vector<RequestTimes> request_times(const StreamRound& round, const std::vector<std::int64_t>& after_ns);

}  // namespace decodelab
