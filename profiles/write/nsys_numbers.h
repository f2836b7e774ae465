// Numbers that nsys' SQLite exports use for kinds of events.
#pragma once

#include <cstdint>

namespace decodelab {

/// `NVTX_EVENTS.eventType` of a range that was pushed and popped.
inline constexpr std::int64_t kPushPopRange = 59;
/// `eventClass` of a row of `CUPTI_ACTIVITY_KIND_RUNTIME`.
inline constexpr std::int64_t kRuntimeClass = 0;
inline constexpr std::int64_t kDriverClass = 1;
inline constexpr std::int64_t kOverheadClass = 2;

}  // namespace decodelab
