// Accounts for every nanosecond of the steps of a trace: device busy, gaps by cause, host time by stage and operator.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiles/trace/trace.h"

namespace decodelab {

/// Why a device was idle. `edge` is the time from the step's start to its first operation, and from the last operation
/// to the step's end.
enum class GapCause : std::uint8_t { sync, host_after_sync, dispatch, launch_latency, dependency, tool, unknown, edge };
inline constexpr std::array<const char*, 8> kGapCauseNames{
    "sync", "host-after-sync", "dispatch", "launch-latency", "dependency", "tool", "unknown", "edge"};

struct Gap {
  std::int32_t step = kNoStep;
  std::int32_t device = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  GapCause cause = GapCause::unknown;
  std::int64_t next_operation = kNoRow;  ///< The operation that ended it; kNoRow at the end of a step.
};

/// What one stage of the engine cost, summed over the steps that statistics use. Times are ns of self time: time that
/// lies in no inner span.
struct StageCost {
  Stage stage = Stage::other;
  std::int64_t host_ns = 0;
  std::int64_t device_ns = 0;
  std::int64_t operators = 0;
  std::int64_t kernels = 0;
  std::int64_t allocations = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t expected_bytes = 0;
  std::optional<double> bandwidth_share;  ///< Share of the measured bandwidth; empty if it or the bytes are unknown.
};

struct OperatorCost {
  StringId name = 0;
  Stage stage = Stage::other;
  std::int32_t layer = kNoLayer;
  std::int64_t calls = 0;
  std::int64_t self_ns = 0;
  std::int64_t total_ns = 0;
};

/// One step as integers that add up: busy_ns + the gaps == span_ns with a device, and the stages' host_ns + residual_ns
/// == span_ns on the thread that ran it. With several devices the times are those of the device with most operations;
/// kernels and launches are summed over all devices.
struct StepAccount {
  std::int32_t index = 0;
  std::int64_t span_ns = 0;
  std::int64_t busy_ns = 0;
  std::array<std::int64_t, kGapCauseNames.size()> gap_ns{};
  std::array<std::int64_t, kStageNames.size()> host_stage_ns{};
  std::int64_t residual_ns = 0;     ///< Host time in no stage.
  std::int64_t host_margin_ns = 0;  ///< How far the host ran ahead: sum of positive (previous end - launch start).
  /// Sum over launches of (start of the first operation - start of the launch), which is TKLQT of arXiv:2504.11750.
  std::int64_t launch_to_start_ns = 0;
  std::int64_t launches = 0;
  std::int64_t operators = 0;
  std::int64_t graph_kernel_ns = 0;  ///< Kernel time under graphs.
  std::int64_t kernel_ns = 0;        ///< Kernel time in all; kernels that overlap count twice.
};

enum class ShareKind : std::uint8_t { operation, gap, residual };

/// Time of the steps that lies in one place. Every nanosecond lies in exactly one share: with a device in the operation
/// that kept it busy (the first, where several overlap) or in a gap, on a CPU in the innermost operator of the thread
/// that ran the step.
struct TimeShare {
  ShareKind kind = ShareKind::operation;
  GapCause cause = GapCause::unknown;  ///< Cause of a gap.
  Stage stage = Stage::other;
  std::int32_t layer = kNoLayer;
  StringId name = 0;  ///< Operation or operator; 0: the stage itself, outside of its operators.
  std::int64_t ns = 0;
  std::int64_t calls = 0;
};

struct Attribution {
  bool believable = false;  ///< False for a broken trace: everything below is empty, and `refusal` says why.
  std::string refusal;
  std::vector<StepAccount> steps;  ///< The steps that statistics use.
  std::vector<Gap> gaps;
  std::vector<StageCost> stages;
  std::vector<OperatorCost> operators;  ///< By total self time, largest first.
  std::string bound_by;                 ///< "kernels", "sync", "dispatch", ...; on a CPU the stage with most self time.
  std::int64_t steps_ns = 0;            ///< Sum of the steps' spans.
  /// False where tracing slowed the steps down: then kernels may be ranked, and nothing else may be concluded.
  bool host_time_believable = true;
  bool on_device = false;         ///< Whether busy_ns and gaps are given; else the account is the host's.
  std::int64_t device_bytes = 0;  ///< Bytes of copies and sets in those steps.
  /// Operations of devices by total time, largest first; self_ns is the time for which they kept the device busy.
  std::vector<OperatorCost> kernels;
  std::vector<TimeShare> shares;  ///< They add up to steps_ns.
};

struct TraceQuality;
/// Returns the account of a trace. Throws nothing: where there can be no account, Attribution::refusal says why.
Attribution attribute(const Trace& trace, const TraceQuality& quality);

}  // namespace decodelab
