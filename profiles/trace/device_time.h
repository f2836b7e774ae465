// Computes when a device was busy, with which operation, and why it was idle.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "profiles/trace/attribution.h"
#include "profiles/trace/intervals.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// The longest time from the return of a launch to the start of its operation on an idle device that launching
/// explains. Null kernels start 2 to 5 us after their launch; twice that leaves room for slower hosts.
inline constexpr std::int64_t kLongestLaunchNs = 10'000;

/// A piece of time in which `operation_row` kept the device busy; where several ran, the one that started first.
struct BusySegment {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t operation_row = kNoRow;
};

/// Returns the device that accounts are about: the one with most operations, the lower number at ties; -1 without
/// operations.
std::int32_t busiest_device(const TraceEvents& events);

/// Returns when the device was busy, over all its streams, as disjoint segments in order. Operations whose stamps are 0
/// or inverted are left out.
std::vector<BusySegment> busy_segments(const TraceEvents& events, std::int32_t device);

/// Returns for each row of TraceEvents::operations whether it is the first operation of its launch. The later
/// operations of a graph wait for the device, not for the host.
std::vector<bool> first_of_launch(const TraceEvents& events);

/// Splits gaps between two operations into pieces by cause.
///
/// L is the launch of the operation that ended the gap. The whole gap is `dependency` if L had returned before the gap
/// began, or if the operation is a later one of a graph. Otherwise the time before L is `dispatch`; but where L's
/// thread was waiting for the device when the gap began, the time is `sync` until that wait returned and
/// `host_after_sync` from there to L. From the start of L the gap is `launch_latency`, up to kLongestLaunchNs after L
/// returned, and then `unknown`. Time before the return of L that overheads of the tool on L's thread cover is `tool`,
/// except for the full command buffer, which is a sign of a busy device. Where L was not recorded the gap is `unknown`,
/// or `dependency` if L lies before the capture.
class GapCauses {
 public:
  explicit GapCauses(const TraceEvents& events);

  /// Appends pieces that add up to the gap from `start_ns` to `end_ns`, which is the start of `next_row`. Step and
  /// device of the pieces are those of that operation.
  void explain(std::int64_t start_ns, std::int64_t end_ns, std::int64_t next_row, std::vector<Gap>& gaps) const;

 private:
  /// Appends `piece` with its own cause, and with the cause `tool` where one of `overheads` covers it.
  static void append(Gap piece, const std::vector<TimeInterval>* overheads, std::vector<Gap>& gaps);
  std::int64_t end_of_wait(std::int64_t thread, std::int64_t time_ns) const;

  const TraceEvents& events_;
  std::vector<bool> first_;
  std::uint32_t last_before_ = 0;  ///< Highest correlation of what was launched before the capture.
  // Merged intervals by thread; thread 0 holds those of unknown threads.
  std::unordered_map<std::int64_t, std::vector<TimeInterval>> waits_;
  std::unordered_map<std::int64_t, std::vector<TimeInterval>> overheads_;
};

}  // namespace decodelab
