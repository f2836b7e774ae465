// NVML over functions of the test's own, and the reason where there is no driver.
#include "profiles/collect/nvml.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

int ok_init() { return 0; }
int failing_init() { return 9; }
int shutdown() { return 0; }
int device(unsigned, void** handle) {
  *handle = handle;
  return 0;
}
int clock_of(void*, unsigned kind, unsigned* mhz) {
  *mhz = kind == 1 ? 1980 : 2619;
  return 0;
}
int reasons(void*, unsigned long long* bits) {
  *bits = 4;
  return 0;
}
int no_power(void*, unsigned*) { return 3; }
int temperature(void*, unsigned, unsigned* celsius) {
  *celsius = 41;
  return 0;
}
const char* words(int) { return "Driver Not Loaded"; }

NvmlFunctions functions() {
  return {.init = &ok_init,
          .shutdown = &shutdown,
          .device_by_index = &device,
          .clock = &clock_of,
          .throttle_reasons = &reasons,
          .power = &no_power,
          .temperature = &temperature,
          .error_text = &words};
}

TEST(Nvml, ReadsAtBothEndsAndLeavesOutWhatTheDeviceDoesNotTell) {
  const auto collector = make_nvml_collector(0, functions(), "");
  EXPECT_TRUE(collector->probe().available);
  collector->start({});
  collector->stop();
  TraceEvents events;
  collector->drain(events);
  const auto points = [&](const char* series) {
    return std::ranges::count_if(
        events.counters, [&](const CounterPoint& point) { return events.strings.text(point.series) == series; });
  };
  EXPECT_EQ(points("sm_clock_mhz"), 2);
  EXPECT_EQ(points("throttle_reasons"), 2);
  EXPECT_EQ(points("power_w"), 0);
  EXPECT_EQ(events.counters.front().value, 1980);
  EXPECT_TRUE(events.session.collectors.front().on);
}

TEST(Nvml, SaysWhyItCannotStart) {
  NvmlFunctions refused = functions();
  refused.init = &failing_init;
  const auto collector = make_nvml_collector(0, refused, "");
  EXPECT_EQ(collector->probe().reason, "nvmlInit_v2 failed: Driver Not Loaded");
  collector->start({});
  collector->stop();
  TraceEvents events;
  collector->drain(events);
  EXPECT_TRUE(events.counters.empty());
  EXPECT_FALSE(events.session.collectors.front().on);
}

}  // namespace
}  // namespace decodelab
