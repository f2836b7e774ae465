// Every column of every row of a trace as lines of text, so that two traces can be compared whatever their ids of texts
// are.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "profiles/trace/trace.h"

namespace decodelab::testing {

template <typename... Values>
std::string line(const char* table, const Values&... values) {
  std::ostringstream out;
  out.precision(17);
  out << table;
  ((out << ' ' << values), ...);
  return out.str();
}

inline std::vector<std::string> rows_as_text(const Trace& trace) {
  const TraceEvents& events = trace.events();
  const auto name = [&](StringId id) { return '"' + trace.text(id) + '"'; };
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  std::vector<std::string> lines;
  for (const HostSpan& r : events.spans) {
    lines.push_back(line("span", r.start_ns, r.end_ns, r.thread, r.step, r.layer, name(r.name), r.depth, number(r.kind),
                         number(r.stage), r.allocations, r.allocated_bytes, r.expected_bytes, r.expected_flops,
                         r.process));
  }
  for (const ApiCall& r : events.api_calls) {
    lines.push_back(line("call", r.start_ns, r.end_ns, r.process, r.thread, r.correlation, r.callback_id, name(r.name),
                         number(r.kind), r.driver, r.result));
  }
  for (const DeviceOperation& r : events.operations) {
    lines.push_back(line("operation", r.start_ns, r.end_ns, r.process, r.device, r.context, r.stream, r.correlation,
                         r.graph_id, r.graph_node_id, name(r.name), number(r.kind), r.lane, r.step, r.layer,
                         number(r.stage), r.grid[0], r.grid[1], r.grid[2], r.block[0], r.block[1], r.block[2],
                         r.registers, r.static_shared_bytes, r.dynamic_shared_bytes, r.bytes, r.copy_kind,
                         r.api_row == kNoRow));
  }
  for (const Wait& r : events.waits) {
    lines.push_back(
        line("wait", r.start_ns, r.end_ns, r.process, r.thread, r.stream, r.event, r.correlation, number(r.kind)));
  }
  for (const Overhead& r : events.overheads) {
    lines.push_back(line("overhead", r.start_ns, r.end_ns, r.thread, number(r.kind)));
  }
  for (const CounterPoint& r : events.counters) {
    lines.push_back(line("counter", r.time_ns, name(r.series), r.value));
  }
  for (const Step& r : events.steps) {
    lines.push_back(line("step", r.index, r.start_ns, r.end_ns, r.batch, r.keys, r.launches, r.graph_launches,
                         r.timer_ns, '"' + r.excluded_reason + '"', r.device_start_ns, r.device_end_ns));
  }
  for (const GraphNode& r : events.nodes) {
    lines.push_back(line("node", r.graph_id, r.node_id, r.original_node_id, r.layer, number(r.stage)));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

inline std::string session_as_text(const TraceSession& s) {
  std::ostringstream out;
  out.precision(17);
  out << line("session", s.uuid, s.host, s.process, s.main_thread, s.clock, s.window_start_ns, s.window_end_ns,
              s.unix_offset_ns, static_cast<int>(s.tier), s.source, s.model, s.arm, s.cell, s.device,
              s.launches_counted, s.graph_granularity, s.dropped_records, s.zero_times, s.unknown_records,
              s.out_of_window, s.foreign, s.capture_start_ns, s.capture_end_ns, s.negative_times, s.launched_before,
              s.outlasting, s.open_ranges, s.steps_from, s.steps_by_time, s.perturbation.ratio, s.perturbation.low,
              s.perturbation.high, s.perturbation.pairs);
  for (const TraceDevice& d : s.devices) {
    out << line("\ndevice", d.index, d.name, d.memory_bytes, d.multiprocessors, d.compute_major, d.compute_minor,
                d.nominal_bytes_per_second, d.measured_bytes_per_second);
  }
  for (const auto& [what, version] : s.versions) {
    out << line("\nversion", what, version);
  }
  for (const CollectorState& c : s.collectors) {
    out << line("\ncollector", c.name, c.on, c.reason);
  }
  for (const ClockBracket& b : s.clocks) {
    out << line("\nclock", b.before_ns, b.device_ns, b.after_ns);
  }
  return out.str();
}

}  // namespace decodelab::testing
