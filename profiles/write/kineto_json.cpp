// Writes Kineto's JSON, one line for each event, table by table.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "profiles/write/formats.h"
#include "profiles/write/rows.h"
#include "profiles/write/session_text.h"

namespace decodelab {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;
// Operations in lanes beyond the first are shown as threads of their own, with numbers far from those of streams.
constexpr std::int64_t kFirstLaneThread = 1'000'000;
constexpr std::int64_t kMostLanesOfAStream = 1000;

class KinetoWriter {
 public:
  KinetoWriter(const Trace& trace, const TraceQuality& quality, const ByteSink& sink)
      : trace_(trace), events_(trace.events()), sink_(sink), bounds_(bounds_of(events_)) {
    last_ns_ = std::max(bounds_.end_ns, events_.session.window_end_ns);
    names_.resize(events_.strings.size());
    for (const ApiCall& call : events_.api_calls) {
      processes_.try_emplace(call.process, processes_.size());
    }
    write_head(quality);
  }

  void write() {
    write_names();
    for (const Step& row : events_.steps) {
      write_step(row);
    }
    for (const HostSpan& row : events_.spans) {
      write_span(row);
    }
    for (const ApiCall& row : events_.api_calls) {
      write_call(row);
    }
    for (const DeviceOperation& row : events_.operations) {
      write_operation(row);
    }
    write_flows();
    for (const Wait& row : events_.waits) {
      write_wait(row);
    }
    for (const Overhead& row : events_.overheads) {
      write_overhead(row);
    }
    for (const CounterPoint& row : events_.counters) {
      write_counter(row);
    }
    out_.raw("\n]}\n");
    sink_(out_.text());
  }

 private:
  void write_head(const TraceQuality& quality) {
    const TraceSession& session = events_.session;
    out_.raw("{\"schemaVersion\":1,\"deviceProperties\":[");
    bool first = true;
    for (const TraceDevice& device : session.devices) {
      out_.raw(first ? "\n{\"id\":" : ",\n{\"id\":").number(std::int64_t{device.index});
      out_.raw(",\"name\":\"").raw(json_escaped(device.name)).raw("\"");
      out_.member("totalGlobalMem", device.memory_bytes).member("computeMajor", std::int64_t{device.compute_major});
      out_.member("computeMinor", std::int64_t{device.compute_minor});
      out_.member("numSms", std::int64_t{device.multiprocessors}).raw("}");
      first = false;
    }
    out_.raw("],\n\"trace_id\":\"").raw(json_escaped(session.uuid)).raw("\",\"displayTimeUnit\":\"ns\"");
    out_.member("baseTimeNanoseconds", bounds_.start_ns + session.unix_offset_ns);
    out_.raw(",\n\"").raw(kSessionKey).raw("\":\"").raw(json_escaped(session_text(trace_, quality, 0))).raw("\"");
    out_.raw(",\n\"traceEvents\":[");
  }

  // {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1.000,"dur":2.000,"args":{
  void begin(std::string_view category, std::string_view name, std::int64_t process, std::int64_t thread,
             std::int64_t start_ns, std::int64_t end_ns) {
    next_event();
    out_.raw("{\"ph\":\"X\",\"cat\":\"").raw(category).raw("\",\"name\":\"").raw(name).raw("\"");
    out_.member("pid", process).member("tid", thread);
    out_.raw(",\"ts\":").micros(start_ns - bounds_.start_ns);
    out_.raw(",\"dur\":").micros(std::max(start_ns, end_ns) - start_ns).raw(",\"args\":{");
    first_ = true;
  }
  void end() { out_.raw("}}"); }

  void next_event() {
    if (out_.text().size() >= kBlockBytes) {
      sink_(out_.text());
      out_.text().clear();
    }
    out_.raw(any_ ? ",\n" : "\n");
    any_ = true;
  }

  template <typename Number>
  void argument(std::string_view key, Number value) {
    out_.raw(first_ ? "\"" : ",\"").raw(key).raw("\":");
    if constexpr (std::is_floating_point_v<Number> || std::is_same_v<Number, std::uint64_t>) {
      out_.number(value);
    } else {
      out_.number(static_cast<std::int64_t>(value));
    }
    first_ = false;
  }
  template <typename Number>
  void argument_unless(std::string_view key, Number value, Number none) {
    if (value != none) {
      argument(key, value);
    }
  }
  void argument_text(std::string_view key, std::string_view escaped) {
    out_.raw(first_ ? "\"" : ",\"").raw(key).raw("\":\"").raw(escaped).raw("\"");
    first_ = false;
  }
  void argument_extent(std::string_view key, const std::array<std::int32_t, 3>& extent) {
    out_.raw(first_ ? "\"" : ",\"").raw(key).raw("\":[");
    for (std::size_t i = 0; i < extent.size(); ++i) {
      if (i > 0) {
        out_.raw(",");
      }
      out_.number(std::int64_t{extent[i]});
    }
    out_.raw("]");
    first_ = false;
  }
  void place(std::int32_t step, std::int32_t layer, Stage stage) {
    argument_unless("step", step, kNoStep);
    argument_unless("layer", layer, kNoLayer);
    if (stage != Stage::other) {
      argument_text("stage", name_of(kStageNames, stage));
    }
  }
  void own_end(std::int64_t start_ns, std::int64_t end_ns) {
    if (end_ns < start_ns || end_ns == 0) {
      argument("end_ns", end_ns);
    }
  }

  const std::string& name(StringId id) {
    std::string& escaped = names_[id];
    if (escaped.empty()) {
      escaped = json_escaped(trace_.text(id));
    }
    return escaped;
  }

  void metadata(std::string_view what, std::int64_t process, std::int64_t thread, std::string_view key,
                const std::string& value) {
    next_event();
    out_.raw("{\"ph\":\"M\",\"name\":\"").raw(what).raw("\"").member("pid", process).member("tid", thread);
    out_.raw(",\"ts\":0.000,\"args\":{\"").raw(key).raw("\":").raw(value).raw("}}");
  }
  static std::string quoted(std::string_view text) { return '"' + json_escaped(text) + '"'; }

  void write_names() {
    const TraceSession& session = events_.session;
    metadata("process_name", session.process, 0, "name", quoted("decodelab " + session.arm));
    metadata("process_labels", session.process, 0, "labels", quoted("CPU"));
    metadata("process_sort_index", session.process, 0, "sort_index", "0");
    metadata("thread_name", session.process, session.main_thread, "name", quoted("main"));
    for (const NamedThread& named : session.threads) {
      metadata("thread_name", session.process_of(named.process), named.thread, "name", quoted(named.name));
    }
    std::set<std::int32_t> devices;
    std::map<std::pair<std::int32_t, std::int64_t>, const DeviceOperation*> streams;
    for (const DeviceOperation& row : events_.operations) {
      devices.insert(row.device);
      streams.try_emplace({row.device, thread_of(row)}, &row);
    }
    for (const std::int32_t device : devices) {
      metadata("process_name", device, 0, "name", quoted("GPU " + std::to_string(device)));
      metadata("process_labels", device, 0, "labels", quoted("GPU " + std::to_string(device)));
      metadata("process_sort_index", device, 0, "sort_index", std::to_string(1000 + device));
    }
    for (const auto& [key, row] : streams) {
      std::string text = "stream " + std::to_string(row->stream);
      if (row->lane > 0) {
        text += " lane " + std::to_string(row->lane + 1);
      }
      metadata("thread_name", key.first, key.second, "name", quoted(text));
    }
  }

  static std::int64_t thread_of(const DeviceOperation& row) {
    return row.lane == 0 ? row.stream : kFirstLaneThread + std::int64_t{row.stream} * kMostLanesOfAStream + row.lane;
  }

  void write_step(const Step& row) {
    const TraceSession& session = events_.session;
    begin("user_annotation", "ProfilerStep#" + std::to_string(row.index), session.process, session.main_thread,
          row.start_ns, row.end_ns);
    argument("batch", row.batch);
    argument("keys", row.keys);
    argument_unless("launches", row.launches, std::int64_t{-1});
    if (!row.excluded_reason.empty()) {
      argument_text("excluded", json_escaped(row.excluded_reason));
    }
    end();
  }

  void write_span(const HostSpan& row) {
    begin(row.kind == SpanKind::operator_call ? "cpu_op" : "user_annotation", name(row.name),
          events_.session.process_of(row.process), row.thread, row.start_ns, row.end_ns == 0 ? last_ns_ : row.end_ns);
    if (row.kind != SpanKind::operator_call) {
      argument_text("kind", name_of(kSpanKindNames, row.kind));
    }
    place(row.step, row.layer, row.stage);
    argument_unless("allocations", row.allocations, std::int64_t{0});
    argument_unless("allocated_bytes", row.allocated_bytes, std::int64_t{0});
    argument_unless("expected_bytes", row.expected_bytes, std::int64_t{0});
    argument_unless("expected_flops", row.expected_flops, std::int64_t{0});
    own_end(row.start_ns, row.end_ns);
    end();
  }

  void write_call(const ApiCall& row) {
    begin(row.driver ? "cuda_driver" : "cuda_runtime", name(row.name), row.process, row.thread, row.start_ns,
          row.end_ns);
    argument("cbid", row.callback_id);
    argument("correlation", row.correlation);
    argument_text("kind", name_of(kApiKindNames, row.kind));
    argument_unless("result", row.result, 0);
    own_end(row.start_ns, row.end_ns);
    end();
  }

  void write_operation(const DeviceOperation& row) {
    static constexpr std::array<const char*, 4> kCategories{"kernel", "gpu_memcpy", "gpu_memset", "cuda_graph"};
    begin(name_of(kCategories, row.kind), name(row.name), row.device, thread_of(row), row.start_ns, row.end_ns);
    argument("device", row.device);
    argument("context", row.context);
    argument("stream", row.stream);
    argument("correlation", row.correlation);
    argument_unless("process", row.process, events_.session.process);
    argument_unless("graph id", row.graph_id, std::uint64_t{0});
    argument_unless("graph node id", row.graph_node_id, std::uint64_t{0});
    place(row.step, row.layer, row.stage);
    if (row.kind == DeviceOperationKind::kernel) {
      argument("registers per thread", row.registers);
      argument("shared memory", std::int64_t{row.static_shared_bytes} + row.dynamic_shared_bytes);
      argument_unless("static shared memory", row.static_shared_bytes, 0);
      argument_extent("grid", row.grid);
      argument_extent("block", row.block);
    } else {
      argument("bytes", row.bytes);
      // Bytes per nanosecond are GB per second.
      if (row.end_ns > row.start_ns && row.bytes > 0) {
        argument("memory bandwidth (GB/s)",
                 static_cast<double>(row.bytes) / static_cast<double>(row.end_ns - row.start_ns));
      }
      argument_unless("copy kind", row.copy_kind, 0);
    }
    own_end(row.start_ns, row.end_ns);
    end();
  }

  void arrow(std::string_view phase, std::uint64_t id, std::int64_t process, std::int64_t thread,
             std::int64_t time_ns) {
    next_event();
    out_.raw("{\"ph\":\"").raw(phase).raw("\"").member("id", id).member("pid", process).member("tid", thread);
    out_.raw(",\"ts\":").micros(time_ns - bounds_.start_ns).raw(",\"cat\":\"ac2g\",\"name\":\"ac2g\"");
    out_.raw(phase == "f" ? ",\"bp\":\"e\"}" : "}");
  }

  // Writes one start for each call and one end for each operation, as in kineto's files: the launch of a graph has many
  // ends.
  void write_flows() {
    std::vector<bool> started(events_.api_calls.size());
    for (const Flow& flow : trace_.flows()) {
      const auto row = static_cast<std::size_t>(flow.api_row);
      const ApiCall& call = events_.api_calls[row];
      const DeviceOperation& operation = events_.operations[static_cast<std::size_t>(flow.operation_row)];
      // Correlation ids are unique in one process only.
      const std::uint64_t id = std::uint64_t{processes_.at(call.process)} << 32 | call.correlation;
      if (!started[row]) {
        arrow("s", id, call.process, call.thread, call.start_ns);
      }
      started[row] = true;
      arrow("f", id, operation.device, thread_of(operation), operation.start_ns);
    }
  }

  void write_wait(const Wait& row) {
    begin("cuda_sync", name_of(kWaitNames, row.kind), row.process, row.thread, row.start_ns, row.end_ns);
    argument("wait_on_stream", row.stream);
    argument("correlation", row.correlation);
    argument_unless("wait_on_cuda_event_id", row.event, 0u);
    own_end(row.start_ns, row.end_ns);
    end();
  }

  void write_overhead(const Overhead& row) {
    begin("overhead", name_of(kOverheadNames, row.kind), events_.session.process, row.thread, row.start_ns, row.end_ns);
    own_end(row.start_ns, row.end_ns);
    end();
  }

  void write_counter(const CounterPoint& row) {
    next_event();
    out_.raw("{\"ph\":\"C\",\"cat\":\"hardware_counters\",\"name\":\"").raw(name(row.series)).raw("\"");
    out_.member("pid", events_.session.process).member("tid", std::int64_t{0});
    out_.raw(",\"ts\":")
        .micros(row.time_ns - bounds_.start_ns)
        .raw(",\"args\":{\"value\":")
        .number(row.value)
        .raw("}}");
  }

  const Trace& trace_;
  const TraceEvents& events_;
  const ByteSink& sink_;
  TraceBounds bounds_;
  std::int64_t last_ns_ = 0;
  std::vector<std::string> names_;
  std::map<std::int64_t, std::size_t> processes_;
  JsonText out_;
  bool any_ = false;
  bool first_ = true;
};

}  // namespace

void write_kineto_json(const Trace& trace, const TraceQuality& quality, const ByteSink& sink) {
  KinetoWriter(trace, quality, sink).write();
}

}  // namespace decodelab
