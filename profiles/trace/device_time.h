// When a device was busy, with what, and why it was not.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "profiles/trace/attribution.h"
#include "profiles/trace/intervals.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// A launch that took longer than this to reach an idle device is not explained by launching. Null kernels start 2 to 5
/// us after their launch; twice that leaves room for slower hosts.
inline constexpr std::int64_t kLongestLaunchNs = 10'000;

/// A piece of time in which `operation_row` kept the device busy; where several ran, the one that started first.
struct BusySegment {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t operation_row = kNoRow;
};

/// The device that accounts are about: the one with most operations, the lower number at ties; -1 without operations.
std::int32_t busiest_device(const TraceEvents& events);

/// Disjoint and in order, over all streams of the device. Operations whose stamps are 0 or inverted are left out.
std::vector<BusySegment> busy_segments(const TraceEvents& events, std::int32_t device);

/// By row of TraceEvents::operations, whether it is the first of its launch: others of a graph wait for the device, not
/// the host.
std::vector<bool> first_of_launch(const TraceEvents& events);

/// Says what a gap between two operations is made of.
///
/// With the launch L of the operation that ended the gap: nothing but `dependency` if L had returned before the gap
/// began, or the operation is a later one of a graph. Otherwise the time before L is `sync` up to the return of a wait
/// that the device's end let go, and `host_after_sync` from there; without such a wait it is `dispatch`. From L on it
/// is `launch_latency`, up to kLongestLaunchNs after L returned, and then `unknown`. What overheads of the tool on L's
/// thread cover before L returned is `tool`, but for the full command buffer, which is a sign of a busy device. Without
/// L it is `unknown`, but for `dependency` where L lies before the capture.
class GapCauses {
 public:
  explicit GapCauses(const TraceEvents& events);

  /// Appends pieces that add up to the gap from `start_ns` to the start of `next_row`, with `step` and `device` as of
  /// the operation.
  void explain(std::int64_t start_ns, std::int64_t end_ns, std::int64_t next_row, std::vector<Gap>& gaps) const;

 private:
  /// Appends [start, end) as `cause`, but `tool` where one of `overheads` is.
  static void append(Gap piece, const std::vector<TimeInterval>* overheads, std::vector<Gap>& gaps);
  std::int64_t end_of_wait(std::int64_t thread, std::int64_t time_ns) const;

  const TraceEvents& events_;
  std::vector<bool> first_;
  std::uint32_t last_before_ = 0;  ///< Highest correlation of what was launched before the capture.
  // By thread, merged; the thread 0 where it is not known.
  std::unordered_map<std::int64_t, std::vector<TimeInterval>> waits_;
  std::unordered_map<std::int64_t, std::vector<TimeInterval>> overheads_;
};

}  // namespace decodelab
