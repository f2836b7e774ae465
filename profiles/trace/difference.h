// Compares two traces: rows of stages, layers and operations that add up to the whole difference of a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiles/trace/attribution.h"
#include "profiles/trace/trace.h"

namespace decodelab {

enum class Change : std::uint8_t { same, removed, added, slower, faster };
const char* to_string(Change change);

/// Time in one place, per step of each trace. Names are matched by their texts.
struct DifferenceRow {
  ShareKind kind = ShareKind::operation;
  GapCause cause = GapCause::unknown;  ///< Cause of a gap.
  Stage stage = Stage::other;
  std::int32_t layer = kNoLayer;  ///< kNoLayer too in tables that do not tell layers apart.
  std::string name;               ///< Empty in tables of stages and layers, and for a stage outside of its operators.
  double a_ns = 0;                ///< Mean per step.
  double b_ns = 0;
  std::int64_t delta_ns = 0;  ///< b - a, rounded so that the rows of a table add up; off by less than 1 ns.
  double a_calls = 0;         ///< Mean calls per step; only of operations and operators.
  double b_calls = 0;
  Change change = Change::same;
};

/// Something that is counted, per step.
struct DifferenceAmount {
  /// launches, operators, allocations, allocated_bytes, modelled_bytes, device_bytes or kernel_ns_in_graphs.
  std::string name;
  double a = 0;
  double b = 0;
};

struct TraceDifference {
  std::string refusal;  ///< Empty, or why the two cannot be compared; then the rest is empty.
  bool on_device = false;
  /// False where tracing slowed down either trace: then rows of kernels can be believed, and rows of gaps cannot.
  bool host_time_believable = true;
  std::int64_t a_steps = 0;
  std::int64_t b_steps = 0;
  double a_step_ns = 0;
  double b_step_ns = 0;
  std::int64_t delta_ns = 0;  ///< Difference of the mean step; the rows of each table add up to it.
  /// Largest change first. With a device the rows are busy time by place and gaps by cause, on a CPU self time by place
  /// and the residual.
  std::vector<DifferenceRow> stages;
  std::vector<DifferenceRow> layers;
  std::vector<DifferenceRow> operations;
  std::vector<DifferenceAmount> amounts;
};

/// Compares two traces. Throws nothing: where they cannot be compared, `refusal` says why.
TraceDifference difference(const Trace& a, const Attribution& a_account, const Trace& b, const Attribution& b_account);

}  // namespace decodelab
