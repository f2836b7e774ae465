// Declares the rows of a trace, which collectors fill and which the verifier, the attribution and every exporter read.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiles/range.h"

namespace decodelab {

/// Identifies a text in TraceStrings, which many rows may share; 0 is the empty text.
using StringId = std::uint32_t;

/// Stores each text once. Ids count the texts in the order of first use, so that equal collections give equal files.
class TraceStrings {
 public:
  TraceStrings();
  TraceStrings(const TraceStrings& other);
  TraceStrings& operator=(const TraceStrings& other);
  TraceStrings(TraceStrings&&) noexcept = default;
  TraceStrings& operator=(TraceStrings&&) noexcept = default;
  ~TraceStrings() = default;

  StringId id(std::string_view text);
  const std::string& text(StringId id) const { return texts_.at(id); }
  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // A deque never moves its texts, which the keys below point into.
  std::unordered_map<std::string_view, StringId> ids_;
};

/// How much a trace records. No number combines two tiers.
enum class TraceTier : std::uint8_t {
  untraced = 0,  ///< The engine counts launches and nothing is recorded; timed passes run at this tier.
  kernels = 1,   ///< T1: spans, operators and device operations.
  causes = 2,    ///< T2: also API calls, waits and the tool's own overhead, from which the causes of gaps are read.
};

enum class SpanKind : std::uint8_t { step, layer, stage, operator_call, other };

inline constexpr std::int32_t kNoStep = -1;
inline constexpr std::int32_t kNoLayer = -1;
inline constexpr std::int64_t kNoRow = -1;

/// Something that a host thread did. All times of a trace are ns of one clock, CLOCK_MONOTONIC where we collected it.
struct HostSpan {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;  ///< 0: was still open when collection stopped.
  std::int64_t thread = 0;  ///< Thread id of the operating system.
  std::int32_t step = kNoStep;
  std::int32_t layer = kNoLayer;
  StringId name = 0;
  std::uint16_t depth = 0;  ///< 0 for the outermost; filled by seal().
  SpanKind kind = SpanKind::other;
  Stage stage = Stage::other;
  std::int64_t allocations = 0;  ///< Tensors allocated while this was the innermost span.
  std::int64_t allocated_bytes = 0;
  std::int64_t expected_bytes = 0;  ///< Bytes that the engine's model says this reads and writes; 0: not modelled.
  std::int64_t expected_flops = 0;
  std::int64_t process = 0;  ///< 0: the process of the session.
};

enum class ApiKind : std::uint8_t { launch, graph_launch, copy, set, synchronize, allocate, other };

/// A call of the CUDA runtime or driver.
struct ApiCall {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t process = 0;  ///< Correlation ids are unique in one process only.
  std::int64_t thread = 0;
  std::uint32_t correlation = 0;
  std::uint32_t callback_id = 0;  ///< CUPTI's number of the function.
  StringId name = 0;
  ApiKind kind = ApiKind::other;
  bool driver = false;  ///< A call of the driver, else of the runtime.
  std::int32_t result = 0;
  bool outlasts = false;  ///< Its operation lies after the capture; filled by mark_edges().
};

enum class DeviceOperationKind : std::uint8_t { kernel, copy, set, graph };

/// Something that a device did. A `graph` row is one whole replay, in traces that were taken at that granularity.
struct DeviceOperation {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t process = 0;
  std::int32_t device = 0;
  std::int32_t context = 0;
  std::int32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint64_t graph_id = 0;       ///< 0: launched by itself.
  std::uint64_t graph_node_id = 0;  ///< Together with process and correlation: the key of an operation of a graph.
  StringId name = 0;
  DeviceOperationKind kind = DeviceOperationKind::kernel;
  std::uint16_t lane = 0;  ///< Overlapping operations of one stream get different lanes; filled by seal().
  /// The step of the API call that launched it, not the step that it runs in, unless TraceSession::steps_by_time is
  /// set; filled by seal().
  std::int32_t step = kNoStep;
  std::int32_t layer = kNoLayer;  ///< From the node map or the span that launched it; filled by seal().
  Stage stage = Stage::other;     ///< Likewise.
  std::array<std::int32_t, 3> grid{};
  std::array<std::int32_t, 3> block{};
  std::int32_t registers = 0;
  std::int32_t static_shared_bytes = 0;
  std::int32_t dynamic_shared_bytes = 0;
  std::int64_t bytes = 0;         ///< Bytes of a copy or a set.
  std::int32_t copy_kind = 0;     ///< CUPTI's: 1 host to device, 2 device to host, 8 device to device.
  std::int64_t api_row = kNoRow;  ///< Row in TraceEvents::api_calls of the call that launched it; filled by seal().
  bool launched_before = false;   ///< Its launch lies before the capture; filled by mark_edges().
};

inline bool has_times(const DeviceOperation& operation) {
  return operation.start_ns > 0 && operation.end_ns >= operation.start_ns;
}

enum class WaitKind : std::uint8_t { event = 1, stream_wait_event = 2, stream = 3, context = 4 };  // CUPTI's numbers

/// A thread that waited for a device.
struct Wait {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::int32_t stream = 0;
  std::uint32_t event = 0;
  std::uint32_t correlation = 0;
  WaitKind kind = WaitKind::stream;
};

/// CUPTI's numbers shifted down by 16, except for that of the driver's compiler.
enum class OverheadKind : std::uint8_t {
  driver_compiler = 0,
  buffer_flush = 1,
  instrumentation = 2,
  resource = 3,
  module_loading = 4,
  lazy_function_loading = 5,
  command_buffer_full = 6,  ///< The host ran ahead as far as it may: a sign of a busy device, not a cost.
  buffer_request = 7,
  unified_memory = 8,
};

/// Time that the tool or the driver took for itself.
struct Overhead {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t thread = 0;
  OverheadKind kind = OverheadKind::instrumentation;
};

struct CounterPoint {
  std::int64_t time_ns = 0;
  StringId series = 0;  ///< Name of the series, with its unit: held_bytes, sm_clock_mhz.
  double value = 0;
};

/// One step of the engine.
struct Step {
  std::int32_t index = 0;
  /// Start and end on the host: from the call to the end of its work, as the timer of the harness measured them.
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t batch = 0;
  std::int64_t keys = 0;       ///< Keys held before the step; prompt tokens in a prefill.
  std::int64_t launches = -1;  ///< Launches, copies and sets, counted apart from the rows; -1: not counted.
  std::int64_t graph_launches = -1;
  std::int64_t timer_ns = 0;         ///< Length of the same step by an independent timer; 0: there was none.
  std::string excluded_reason;       ///< Empty, or why statistics leave it out: "cut by the start of the window".
  std::int64_t device_start_ns = 0;  ///< Start of the first device operation, end of the last; 0: none; by seal().
  std::int64_t device_end_ns = 0;
};

/// Where in the engine an operation of a CUDA graph comes from, noted when it was captured.
struct GraphNode {
  std::uint64_t graph_id = 0;
  std::uint64_t node_id = 0;
  std::uint64_t original_node_id = 0;  ///< The node that this was cloned from; 0 for an original.
  std::int32_t layer = kNoLayer;
  Stage stage = Stage::other;
};

struct TraceDevice {
  std::int32_t index = 0;
  std::string name;
  std::int64_t memory_bytes = 0;
  std::int32_t multiprocessors = 0;
  std::int32_t compute_major = 0;
  std::int32_t compute_minor = 0;
  double nominal_bytes_per_second = 0;
  double measured_bytes_per_second = 0;  ///< By a copy kernel on that machine; 0 where nobody measured.
};

/// Holds a read of a device's clock between two reads of the host's clock.
struct ClockBracket {
  std::int64_t before_ns = 0;
  std::int64_t device_ns = 0;
  std::int64_t after_ns = 0;
};

/// A thread that viewers show under a name.
struct NamedThread {
  std::int64_t process = 0;  ///< 0: the process of the session.
  std::int64_t thread = 0;   ///< Thread id of the operating system.
  std::string name;
};

/// A collector that was asked for, and whether it ran.
struct CollectorState {
  std::string name;  ///< spans, operators, cupti, graph-nodes, nvml, perf, ranks.
  bool on = false;
  std::string reason;  ///< Why it is off, in one sentence; empty where it is on.
};

/// How much tracing slows a step down, measured by traced and untraced steps in the same process, in mirrored order.
struct Perturbation {
  double ratio = 0;  ///< Traced over untraced; 0 where it was not measured.
  double low = 0;    ///< 95 % interval over `pairs` pairs of visits.
  double high = 0;
  std::int64_t pairs = 0;
};

/// What was traced, by whom, and what the collectors say of themselves.
struct TraceSession {
  std::string uuid;
  std::string host;
  std::int64_t process = 0;
  std::int64_t main_thread = 0;
  std::string clock = "CLOCK_MONOTONIC";
  std::int64_t window_start_ns = 0;  ///< Collection was complete from window_start_ns to window_end_ns.
  std::int64_t window_end_ns = 0;
  std::int64_t unix_offset_ns = 0;  ///< Add it to a time of the trace for ns since 1970.
  TraceTier tier = TraceTier::kernels;
  std::string source = "decodelab";  ///< Or what an imported file says of itself: "nsys 2026.2.1", "kineto".
  std::string model;
  std::string arm;             ///< Canonical label.
  std::string cell;            ///< "decode b=8 length=128 bf16 cpu".
  std::string device = "cpu";  ///< Device of the engine: cpu or cuda.
  std::vector<TraceDevice> devices;
  std::vector<NamedThread> threads;  ///< Ranks that share the model, but for the first; none elsewhere.
  std::vector<std::pair<std::string, std::string>> versions;  ///< {"cupti", "13.0"}, {"commit", "..."}.
  std::vector<CollectorState> collectors;
  std::vector<ClockBracket> clocks;  ///< At the start and at the end of the window; empty without a device.
  bool launches_counted = false;     ///< Whether Step::launches is a count that is independent of the rows.
  bool graph_granularity = false;    ///< A replay of a graph is one row, so its kernels are not known.
  std::int64_t dropped_records = 0;  ///< Records dropped by CUPTI, by our ring and by refused buffers together.
  std::int64_t zero_times = 0;       ///< Records whose stamps were 0, dropped when they were parsed.
  std::int64_t unknown_records = 0;
  std::int64_t out_of_window = 0;
  Perturbation perturbation;
  bool foreign = false;               ///< Captured by another tool, which may begin and end in the middle of the work.
  std::int64_t capture_start_ns = 0;  ///< First and last time of a foreign file; the window is its complete part.
  std::int64_t capture_end_ns = 0;
  std::int64_t negative_times = 0;   ///< Rows that began before time 0; all times were moved so that none does.
  std::int64_t launched_before = 0;  ///< Operations whose launch lies before the capture.
  std::int64_t outlasting = 0;       ///< Launches whose operation lies after the capture.
  std::int64_t open_ranges = 0;      ///< Ranges that were open when the capture ended.
  std::string steps_from;      ///< What the steps of a foreign trace are: "CUDA graph launches, each to the next".
  bool steps_by_time = false;  ///< Operations belong to the step that they start in, whoever launched them.

  /// Returns the process that a row of HostSpan or NamedThread means.
  std::int64_t process_of(std::int64_t of_row) const { return of_row == 0 ? process : of_row; }
};

/// A collection that is not sealed yet.
struct TraceEvents {
  TraceSession session;
  TraceStrings strings;
  std::vector<HostSpan> spans;
  std::vector<ApiCall> api_calls;
  std::vector<DeviceOperation> operations;
  std::vector<Wait> waits;
  std::vector<Overhead> overheads;
  std::vector<CounterPoint> counters;
  std::vector<Step> steps;
  std::vector<GraphNode> nodes;
};

}  // namespace decodelab
