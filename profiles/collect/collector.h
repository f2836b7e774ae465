// Declares the collectors that fill the rows of a trace while steps run, and one that replaces a collector that cannot
// run and says why.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "profiles/trace/events.h"

namespace decodelab {

/// Whether a collector can run here.
struct Capability {
  bool available = false;
  std::string reason;  ///< Why it cannot, in one sentence; empty where it can.
};

/// More rows than this in one trace are refused before tracing or counted as dropped: no viewer opens them.
inline constexpr std::int64_t kMostTraceEvents = 4'000'000;

struct TraceConfig {
  TraceTier tier = TraceTier::kernels;
  /// The most rows of one collector; later ones are counted in TraceSession::dropped_records.
  std::int64_t most_events = kMostTraceEvents;
};

/// Collects rows of one sort. The calls come from the thread that runs the steps, in this order: probe, start,
/// (begin_step, end_step)*, stop, drain.
class Collector {
 public:
  virtual ~Collector() = default;

  /// Returns the name for CollectorState::name: spans, operators, cupti, graph-nodes, nvml, perf, ranks.
  virtual std::string name() const = 0;

  /// Returns whether the collector can run, without starting anything. A collector that is not available may be started
  /// all the same, and then records nothing.
  virtual Capability probe() = 0;

  virtual void start(const TraceConfig& config) = 0;

  /// begin_step() gets a step of which only index, batch and keys are set; end_step() gets its times and counts too.
  virtual void begin_step(const Step& step) { static_cast<void>(step); }
  virtual void end_step(const Step& step) { static_cast<void>(step); }

  /// Ends the collection: no row is added after this call. The caller must have waited for the devices before.
  virtual void stop() = 0;

  /// Appends the rows, adds to the counts of the session (never sets them), appends one CollectorState, and forgets all
  /// of it. A collector appends no steps: the code that runs them appends TraceEvents::steps.
  virtual void drain(TraceEvents& events) = 0;
};

/// Replaces a collector that was asked for and cannot run.
class NullCollector final : public Collector {
 public:
  NullCollector(std::string name, std::string reason) : name_(std::move(name)), reason_(std::move(reason)) {}

  std::string name() const override { return name_; }
  Capability probe() override { return {.available = false, .reason = reason_}; }
  void start(const TraceConfig& config) override { static_cast<void>(config); }
  void stop() override {}
  void drain(TraceEvents& events) override {
    events.session.collectors.push_back({.name = name_, .on = false, .reason = reason_});
  }

 private:
  std::string name_;
  std::string reason_;
};

}  // namespace decodelab
