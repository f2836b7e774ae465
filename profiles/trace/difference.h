// What moved between two traces: rows of stages, layers and operations that add up to the whole difference of a step.
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
  GapCause cause = GapCause::unknown;  ///< Of gaps.
  Stage stage = Stage::other;
  std::int32_t layer = kNoLayer;  ///< kNoLayer too in tables that do not tell layers apart.
  std::string name;               ///< Empty in tables of stages and layers, and for a stage outside of its operators.
  double a_ns = 0;                ///< Mean of a step.
  double b_ns = 0;
  std::int64_t delta_ns = 0;  ///< b - a, rounded so that the rows of a table add up; off by less than 1 ns.
  double a_calls = 0;         ///< Mean of a step, of operations and operators.
  double b_calls = 0;
  Change change = Change::same;
};

/// Something that is counted, per step.
struct DifferenceAmount {
  std::string
      name;  ///< launches, operators, allocations, allocated_bytes, modelled_bytes, device_bytes, kernel_ns_in_graphs.
  double a = 0;
  double b = 0;
};

struct TraceDifference {
  std::string refusal;  ///< Empty, or why the two cannot be compared; then the rest is empty.
  bool on_device = false;
  bool host_time_believable =
      true;  ///< False where tracing slowed down either: the rows of kernels stand, those of gaps do not.
  std::int64_t a_steps = 0;
  std::int64_t b_steps = 0;
  double a_step_ns = 0;
  double b_step_ns = 0;
  std::int64_t delta_ns = 0;  ///< Of a mean step; what the rows of each table add up to.
  /// Largest change first. With a device the rows are busy time by place and gaps by cause, on a CPU self time by place
  /// and the residual.
  std::vector<DifferenceRow> stages;
  std::vector<DifferenceRow> layers;
  std::vector<DifferenceRow> operations;
  std::vector<DifferenceAmount> amounts;
};

/// Throws nothing: what cannot be compared is a refusal.
TraceDifference difference(const Trace& a, const Attribution& a_account, const Trace& b, const Attribution& b_account);

}  // namespace decodelab
