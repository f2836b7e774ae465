// The part of Perfetto's trace format that we write: numbers of fields and of enumerators, and the names of our
// annotations.
#pragma once

#include <array>
#include <cstdint>

// Checked against the official schema by tests/profiles/trace_schema_test.py. TrackEvent and TrackDescriptor are what
// Perfetto declares stable (https://perfetto.dev/docs/reference/synthetic-track-event).
namespace decodelab::perfetto {

namespace trace {
enum : std::uint32_t { packet = 1 };
}
namespace packet {
enum : std::uint32_t {
  clock_snapshot = 6,
  timestamp = 8,
  sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  defaults = 59,
  track_descriptor = 60,
  first_on_sequence = 87,
  trace_attributes = 126,
};
inline constexpr std::uint32_t kDefaultsClock = 58;
inline constexpr std::uint32_t kIncrementalStateCleared = 1;
inline constexpr std::uint32_t kNeedsIncrementalState = 2;
}  // namespace packet
namespace clock {
enum : std::uint32_t { clocks = 1, primary = 2, id = 1, timestamp = 2 };
inline constexpr std::uint32_t kRealtime = 1;
inline constexpr std::uint32_t kMonotonic = 3;
}  // namespace clock
namespace attributes {
enum : std::uint32_t { attribute = 1, key = 1, string_value = 3 };
}
namespace event {
enum : std::uint32_t {
  category_iids = 3,
  annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  double_counter_value = 44,
  flow_ids = 47,
  terminating_flow_ids = 48,
};
enum Type : std::uint32_t { begin = 1, end = 2, instant = 3, counter = 4 };
}  // namespace event
namespace track {
enum : std::uint32_t {
  uuid = 1,
  name = 2,
  process = 3,
  thread = 4,
  parent_uuid = 5,
  counter = 8,
  child_ordering = 11,
  sibling_order_rank = 12,
  description = 14,
  sibling_merge_behavior = 15,
};
inline constexpr std::int32_t kExplicitOrder = 3;
/// The default merges siblings of one name.
inline constexpr std::int32_t kMergeNone = 2;
enum : std::uint32_t { process_pid = 1, process_name = 6 };
enum : std::uint32_t { thread_pid = 1, thread_tid = 2, thread_name = 5 };
enum : std::uint32_t { counter_unit_name = 6 };
}  // namespace track
namespace interned {
enum : std::uint32_t { categories = 1, names = 2, annotation_names = 3, annotation_strings = 29, iid = 1, text = 2 };
}
namespace annotation {
enum : std::uint32_t { name_iid = 1, int_value = 4, string_value = 6, string_value_iid = 17 };
}

/// Categories of events, which say which table a row is from. The iid of a category is its value plus one.
enum class Category : std::uint8_t {
  step_span,
  layer_span,
  stage_span,
  operator_span,
  span,
  runtime,
  driver,
  kernel,
  memcpy,
  memset,
  graph,
  wait,
  overhead,
  step,
  range,
  quality,
};
inline constexpr std::array<const char*, 16> kCategoryNames{
    "step_span", "layer_span", "stage_span", "operator", "span",     "runtime", "driver", "kernel",
    "memcpy",    "memset",     "graph",      "wait",     "overhead", "step",    "range",  "quality"};

/// Keys of debug annotations. The iid of a key is its value plus one. New keys are only ever added at the end, since
/// queries of users name them.
enum class Key : std::uint8_t {
  correlation,
  graph_node,
  graph,
  grid,
  block,
  regs,
  bytes,
  step,
  layer,
  stage,
  device,
  context,
  stream,
  process,
  thread,
  static_shared,
  dynamic_shared,
  copy_kind,
  kind,
  cbid,
  result,
  allocations,
  allocated_bytes,
  expected_bytes,
  expected_flops,
  event,
  batch,
  keys,
  launches,
  end_ns,
  verdict,
  reason,
  source,
  model,
  arm,
  cell,
  check,
};
inline constexpr std::array<const char*, 37> kKeyNames{
    "correlation",    "graph_node", "graph",  "grid",    "block",    "regs",        "bytes",           "step",
    "layer",          "stage",      "device", "context", "stream",   "process",     "thread",          "static_shared",
    "dynamic_shared", "copy_kind",  "kind",   "cbid",    "result",   "allocations", "allocated_bytes", "expected_bytes",
    "expected_flops", "event",      "batch",  "keys",    "launches", "end_ns",      "verdict",         "reason",
    "source",         "model",      "arm",    "cell",    "check"};

}  // namespace decodelab::perfetto
