// What the two synthetic engines share: a clock of the host, random durations, and spans around them.
#pragma once

#include <random>
#include <string_view>

#include "tests/profiles/synthetic/synthetic.h"

namespace decodelab {

inline constexpr std::int64_t kSyntheticProcess = 4242;
inline constexpr std::int64_t kSyntheticThread = 4243;

/// Stages of a layer, in turn.
inline constexpr std::array<Stage, 6> kSyntheticStages{Stage::norm,      Stage::qkv,        Stage::kv_write,
                                                       Stage::attention, Stage::projection, Stage::mlp};

class SyntheticClock {
 public:
  explicit SyntheticClock(const SyntheticShape& shape) : now_ns(shape.start_ns), random_(shape.seed) {}

  /// From `low` to `high`, both included; the standard's distributions differ between libraries.
  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  void pass(std::int64_t low, std::int64_t high) { now_ns += draw(low, high); }

  std::int64_t now_ns;

 private:
  std::mt19937_64 random_;
};

/// Begins a span now; end_span() ends it. Rows may be added in between, so the row's number is what is kept.
inline std::size_t begin_span(TraceEvents& events, const SyntheticClock& clock, HostSpan span, std::string_view name) {
  span.start_ns = clock.now_ns;
  span.thread = kSyntheticThread;
  span.name = events.strings.id(name);
  events.spans.push_back(span);
  return events.spans.size() - 1;
}

/// Returns how long the span was.
inline std::int64_t end_span(TraceEvents& events, const SyntheticClock& clock, std::size_t row) {
  HostSpan& span = events.spans[row];
  span.end_ns = clock.now_ns;
  return span.end_ns - span.start_ns;
}

void run_synthetic_cpu(const SyntheticShape& shape, SyntheticTrace& trace);
void run_synthetic_device(const SyntheticShape& shape, SyntheticTrace& trace);

}  // namespace decodelab
