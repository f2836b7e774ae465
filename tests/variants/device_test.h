// The fixture of tests that need a GPU, and traces of work that is not an engine's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/measure/trace_window.h"
#include "engine/runtime.h"
#include "profiles/collect/device_collectors.h"
#include "profiles/collect/span_collector.h"
#include "profiles/trace/attribution.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

namespace decodelab::testing {

inline constexpr const char* kGpu = "cuda:0";

/// Skips without a device; each test writes what it saw as a JSON object a line into the file that DECODELAB_EVIDENCE
/// names.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (present_devices().size() < 2) {
      GTEST_SKIP() << "no CUDA device is present";
    }
#ifndef DECODELAB_HAS_CUDA
    GTEST_SKIP() << "this build was made without CUDA, so it has no kernels to trace";
#endif
  }

  static void evidence(const std::map<std::string, double>& figures) {
    const char* const path = std::getenv("DECODELAB_EVIDENCE");
    if (path == nullptr) {
      return;
    }
    std::ofstream file(path, std::ios::app);
    file << R"({"test":")" << ::testing::UnitTest::GetInstance()->current_test_info()->name() << '"';
    for (const auto& [name, value] : figures) {
      file << ",\"" << name << "\":" << value;
    }
    file << "}\n";
  }
};

inline std::string failures(const TraceQuality& quality) {
  std::string text;
  for (const TraceCheck& check : quality.checks) {
    if (check.status == CheckStatus::failed) {
      text += check.id + ": " + check.evidence + "\n";
    }
  }
  return text;
}

inline const TraceCheck& check_of(const TraceQuality& quality, const std::string& id) {
  return *std::ranges::find(quality.checks, id, &TraceCheck::id);
}

struct DeviceWork {
  Trace trace;
  TraceQuality quality;
  Attribution attribution;

  std::vector<DeviceOperation> operations(DeviceOperationKind kind) const {
    std::vector<DeviceOperation> found;
    std::ranges::copy_if(trace.events().operations, std::back_inserter(found),
                         [kind](const DeviceOperation& operation) { return operation.kind == kind; });
    return found;
  }

  /// Of all steps that count, by cause.
  std::map<std::string, double> gaps_ns() const {
    std::map<std::string, double> sums;
    for (const StepAccount& step : attribution.steps) {
      for (std::size_t cause = 0; cause < kGapCauseNames.size(); ++cause) {
        sums[kGapCauseNames[cause]] += static_cast<double>(step.gap_ns[cause]);
      }
    }
    return sums;
  }
};

/// Runs `work(index)` as `steps` steps with the collectors that a trace of the engine has. Each step ends with a wait
/// for the device. One step goes before the window, so that kernels are loaded and CUPTI has made its buffers.
template <typename Work>
DeviceWork record(TraceTier tier, std::int64_t steps, Work&& work) {
  DeviceCollectors devices(kGpu);
  TraceEvents events;
  for (const bool trial : {true, false}) {
    std::vector<std::unique_ptr<Collector>> list;
    list.push_back(std::make_unique<SpanCollector>());
    list.push_back(devices.cupti());
    TraceWindow window(std::move(list));
    events = TraceEvents{};
    events.session.process = getpid();
    events.session.main_thread = gettid();
    events.session.tier = tier;
    events.session.device = "cuda";
    window.start({.tier = tier});
    events.session.window_start_ns = trace_clock_ns();
    for (std::int64_t index = 0; index < (trial ? 1 : steps); ++index) {
      Step step{.index = static_cast<std::int32_t>(index), .batch = 1};
      window.begin_step(step);
      const std::optional<LaunchCounts> before = devices.launches();
      step.start_ns = trace_clock_ns();
      {
        const StepRange range(index);
        work(index);
        in_stage(Stage::host, [] { synchronize(kGpu); });
      }
      step.end_ns = trace_clock_ns();
      if (before) {
        const LaunchCounts after = *devices.launches();
        step.launches = after.launches - before->launches;
        step.graph_launches = after.graph_launches - before->graph_launches;
        events.session.launches_counted = true;
      }
      window.end_step(step);
      events.steps.push_back(std::move(step));
    }
    events.session.window_end_ns = trace_clock_ns();
    window.stop();
    window.drain(events);
  }
  DeviceWork recorded;
  recorded.trace = seal(std::move(events));
  recorded.quality = verify(recorded.trace);
  recorded.attribution = attribute(recorded.trace, recorded.quality);
  return recorded;
}

}  // namespace decodelab::testing
