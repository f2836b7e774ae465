// Sums and differences of the times of tokens.
#include "bench/measure/serving/served_steps.h"

#include <algorithm>
#include <numeric>

namespace decodelab {
namespace {

/// Returns the `index`-th number, from 0, that divides no more of `length` than 1 does; it goes round after the last.
std::int64_t stride_of(std::int64_t length, std::int64_t index) {
  std::vector<std::int64_t> strides;
  for (std::int64_t stride = 1; stride < std::max<std::int64_t>(length, 2); ++stride) {
    if (std::gcd(stride, length) == 1) {
      strides.push_back(stride);
    }
  }
  return strides[static_cast<std::size_t>(index % std::ssize(strides))];
}

}  // namespace

std::vector<std::int64_t> fresh_prompt(std::span<const std::int64_t> prompt, std::int64_t number) {
  const std::int64_t length = std::ssize(prompt);
  if (length == 0) {
    return {};
  }
  const std::int64_t begin = number % length;
  const std::int64_t stride = number < length ? 1 : stride_of(length, number / length);
  std::vector<std::int64_t> fresh;
  for (std::int64_t index = 0; index < length; ++index) {
    fresh.push_back(prompt[static_cast<std::size_t>((begin + index * stride) % length)]);
  }
  return fresh;
}

std::int64_t first_token_ns(const StreamRound& round) {
  std::int64_t last = round.start_ns;
  for (const StreamedCompletion& stream : round.streams) {
    last = std::max(last, stream.token_ns.front());
  }
  return last - round.start_ns;
}

std::int64_t whole_ns(const StreamRound& round) {
  std::int64_t last = round.start_ns;
  for (const StreamedCompletion& stream : round.streams) {
    last = std::max(last, stream.token_ns.back());
  }
  return last - round.start_ns;
}

ServedSteps steps_between_tokens(const StreamRound& round, std::int64_t steps) {
  const std::int64_t start = round.start_ns + first_token_ns(round);
  std::vector<std::span<const std::int64_t>> later;  // the tokens of each stream behind the start
  std::int64_t usable = steps;
  for (const StreamedCompletion& stream : round.streams) {
    later.emplace_back(std::ranges::upper_bound(stream.token_ns, start), stream.token_ns.end());
    usable = std::min<std::int64_t>(usable, std::ssize(later.back()));
  }
  ServedSteps timed;
  std::int64_t before = start;
  for (std::size_t step = 0; step < static_cast<std::size_t>(usable); ++step) {
    std::int64_t end = before;
    for (const auto& tokens : later) {
      end = std::max(end, tokens[step]);
    }
    timed.samples_ns.push_back(end - before);
    before = end;
  }
  timed.wall_ns = before - start;
  return timed;
}

std::vector<RequestTimes> request_times(const StreamRound& round, const std::vector<std::int64_t>& after_ns) {
  std::vector<RequestTimes> requests;
  for (std::size_t request = 0; request < round.streams.size(); ++request) {
    const std::vector<std::int64_t>& tokens = round.streams[request].token_ns;
    requests.push_back({.first_ns = tokens.front() - round.start_ns - (after_ns.empty() ? 0 : after_ns[request]),
                        .later_ns = tokens.back() - tokens.front(),
                        .tokens = std::ssize(tokens)});
  }
  return requests;
}

}  // namespace decodelab
