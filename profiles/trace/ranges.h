// Computes what the ranges of a trace launched: device time by the names that people gave to parts of their program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiles/trace/trace.h"

namespace decodelab {

/// All ranges of one kind (range_kind()), in the steps that statistics use. A range includes everything that was
/// launched while it was open on its thread, and so also what ranges inside it launched.
struct RangeCost {
  std::string name;
  std::int64_t count = 0;
  /// Sum of their lengths. A range inside of one with the same name is not counted again.
  std::int64_t host_ns = 0;
  std::int64_t device_ns = 0;  ///< Sum of the lengths of the operations that they launched.
  std::int64_t operations = 0;
};

/// Returns the ranges of `trace`, most device time first and then most host time. Steps themselves are left out.
std::vector<RangeCost> range_costs(const Trace& trace);

}  // namespace decodelab
