// Makes traces of a decode that was never run, whose every gap has a cause that is known.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "profiles/trace/attribution.h"
#include "profiles/trace/events.h"

namespace decodelab {

struct SyntheticShape {
  int layers = 2;
  int kernels_per_layer = 5;  ///< On a CPU: stages of a layer, each with one to three operators.
  int steps = 4;
  bool graph = false;     ///< The layers are one graph, captured once, cloned once and replayed in every step.
  bool cpu_only = false;  ///< Operators only; no row of a device.
  /// Why the device waits before each launch but the first of a step, in turn. `sync` and `host_after_sync` are the
  /// same wait. Empty: drawn from the seed. `edge` is not a cause that can be asked for.
  std::vector<GapCause> causes;
  std::uint64_t seed = 1;
  std::int64_t start_ns = 1'000'000'000;
};

/// What an exact account of a step must say.
struct SyntheticStep {
  std::int64_t span_ns = 0;
  std::int64_t busy_ns = 0;
  std::array<std::int64_t, kGapCauseNames.size()> gap_ns{};
  std::array<std::int64_t, kStageNames.size()> host_stage_ns{};
  std::int64_t residual_ns = 0;
  std::int64_t host_margin_ns = 0;
  std::int64_t launch_to_start_ns = 0;
  std::int64_t launches = 0;
  std::int64_t operators = 0;
};

struct SyntheticTrace {
  TraceEvents events;  ///< With session and steps, unlike what collectors leave.
  std::vector<SyntheticStep> truth;
};

/// The same shape gives the same trace on every machine. Throws std::invalid_argument for a shape without steps, layers
/// or kernels, or a cause that cannot be asked for.
SyntheticTrace synthetic_trace(const SyntheticShape& shape, TraceTier tier = TraceTier::causes);

}  // namespace decodelab
