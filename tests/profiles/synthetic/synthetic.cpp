// The session around a synthetic decode.
#include "tests/profiles/synthetic/synthetic.h"

#include <stdexcept>

#include "tests/profiles/synthetic/synthetic_engine.h"

namespace decodelab {
namespace {

constexpr std::int64_t kWindowMarginNs = 100'000;
constexpr std::int64_t kBracketNs = 200;

void fill_session(const SyntheticShape& shape, TraceTier tier, TraceEvents& events) {
  TraceSession& session = events.session;
  session.uuid = "00000000-0000-4000-8000-000000000000";
  session.host = "synthetic";
  session.process = kSyntheticProcess;
  session.main_thread = kSyntheticThread;
  session.tier = tier;
  session.source = "synthetic";
  session.model = "synthetic";
  session.arm = shape.graph ? "cuda-graph" : "reference";
  session.device = shape.cpu_only ? "cpu" : "cuda";
  session.cell = "decode b=8 length=128 " + session.device;
  session.window_start_ns = shape.start_ns - kWindowMarginNs;
  session.window_end_ns = events.steps.back().end_ns + kWindowMarginNs;
  session.collectors.push_back({.name = "synthetic", .on = true});
  if (shape.cpu_only) {
    return;
  }
  session.launches_counted = true;
  session.devices.push_back({.name = "synthetic device",
                             .memory_bytes = 1 << 30,
                             .multiprocessors = 132,
                             .compute_major = 9,
                             .nominal_bytes_per_second = 3.35e12,
                             .measured_bytes_per_second = 3e12});
  for (const std::int64_t time : {session.window_start_ns, session.window_end_ns}) {
    session.clocks.push_back({.before_ns = time, .device_ns = time + kBracketNs / 2, .after_ns = time + kBracketNs});
    events.counters.push_back({.time_ns = time, .series = events.strings.id("sm_clock_mhz"), .value = 1980});
  }
}

}  // namespace

SyntheticTrace synthetic_trace(const SyntheticShape& shape, TraceTier tier) {
  if (shape.steps < 1 || shape.layers < 1 || shape.kernels_per_layer < 1) {
    throw std::invalid_argument("a synthetic decode needs at least one step, one layer and one kernel in it");
  }
  SyntheticTrace trace;
  if (shape.cpu_only) {
    run_synthetic_cpu(shape, trace);
  } else {
    run_synthetic_device(shape, trace);
  }
  fill_session(shape, tier, trace.events);
  if (tier != TraceTier::causes) {
    trace.events.api_calls.clear();
    trace.events.waits.clear();
    trace.events.overheads.clear();
  }
  return trace;
}

}  // namespace decodelab
