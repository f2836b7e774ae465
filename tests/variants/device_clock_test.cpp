// A GPU's records after the clock of traces was registered more than once. After all other tests of traces: it may
// garble theirs.
#include "profiles/collect/cupti_functions.h"
#include "tests/variants/device_test.h"
#include "tests/variants/device_work.h"

namespace decodelab {
namespace {

#ifdef DECODELAB_HAS_CUPTI

using testing::DeviceWork;
using testing::record;

class CudaClock : public testing::DeviceTest {};

std::uint64_t CUPTIAPI same_clock() { return static_cast<std::uint64_t>(trace_clock_ns()); }

std::int64_t garbled_operations(const TraceEvents& events) {
  return std::ranges::count_if(events.operations, [&](const DeviceOperation& operation) {
    const bool early = operation.api_row != kNoRow &&
                       operation.start_ns < events.api_calls[static_cast<std::size_t>(operation.api_row)].start_ns;
    return early || operation.start_ns <= 0 || operation.end_ns < operation.start_ns;
  });
}

TEST_F(CudaClock, WhatASecondRegistrationGarblesBreaksTheTrace) {
  constexpr int kSessions = 10;
  constexpr std::int64_t kLaunches = 1000;
  std::string reason;
  const CuptiFunctions cupti = load_cupti(reason);
  ASSERT_EQ(reason, "");
  testing::DeviceStream stream(1);
  std::int64_t garbled_sessions = 0;
  std::int64_t refused = 0;
  for (int session = 0; session < kSessions; ++session) {
    const DeviceWork recorded = record(TraceTier::causes, 1, [&](std::int64_t) {
      // On purpose what the collector never does: pytorch/pytorch#192021.
      refused += cupti.register_timestamp(&same_clock) == CUPTI_SUCCESS ? 0 : 1;
      for (std::int64_t launch = 0; launch < kLaunches; ++launch) {
        stream.empty();
      }
    });
    const TraceEvents& events = recorded.trace.events();
    const std::int64_t garbled = garbled_operations(events) + events.session.zero_times;
    garbled_sessions += garbled > 0 ? 1 : 0;
    // Whether a driver garbles records is its own affair; that none of them is believed is ours.
    EXPECT_EQ(recorded.quality.verdict == TraceVerdict::broken, garbled > 0) << testing::failures(recorded.quality);
  }
  evidence({{"sessions", kSessions},
            {"garbled_sessions", static_cast<double>(garbled_sessions)},
            {"refused_registrations", static_cast<double>(refused)}});
}

#endif

}  // namespace
}  // namespace decodelab
