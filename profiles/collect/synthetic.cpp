// The session around a synthetic decode, and the collector that hands it out.
#include "profiles/collect/synthetic.h"

#include <algorithm>
#include <stdexcept>

#include "profiles/collect/synthetic_engine.h"

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
  if (shape.cpu_only) return;
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

/// Takes rows from the end until `most` are left; returns how many were taken.
template <typename Row>
std::int64_t drop_past(std::vector<Row>& rows, std::int64_t& most) {
  const auto size = static_cast<std::int64_t>(rows.size());
  const std::int64_t kept = std::min(size, most);
  rows.resize(static_cast<std::size_t>(kept));
  most -= kept;
  return size - kept;
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

void SyntheticCollector::start(const TraceConfig& config) {
  config_ = config;
  begun_ = 0;
}

void SyntheticCollector::begin_step(const Step& step) {
  static_cast<void>(step);
  ++begun_;
}

void SyntheticCollector::drain(TraceEvents& events) {
  SyntheticShape shape = shape_;
  if (begun_ > 0) shape.steps = begun_;
  begun_ = 0;
  TraceEvents made = synthetic_trace(shape, config_.tier).events;
  std::int64_t most = config_.most_events;
  made.session.dropped_records = drop_past(made.operations, most) + drop_past(made.spans, most) +
                                 drop_past(made.api_calls, most) + drop_past(made.waits, most) +
                                 drop_past(made.overheads, most) + drop_past(made.counters, most);
  events = std::move(made);
}

}  // namespace decodelab
