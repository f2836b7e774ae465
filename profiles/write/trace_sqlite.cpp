// Fills the tables of a trace, one table a function, in one transaction.
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>

#include "profiles/write/formats.h"
#include "profiles/write/nsys_numbers.h"
#include "profiles/write/rows.h"
#include "profiles/write/session_text.h"
#include "profiles/write/trace_schema.h"

namespace decodelab {
namespace {

using MaybeNumber = std::optional<std::int64_t>;

// 21 in nsys: launched by itself; 2: as a node of a graph. We say nothing of the former.
constexpr std::int64_t kNoGraph = 0;

class Insert {
 public:
  Insert(SQLite::Database& database, const std::string& table, std::initializer_list<const char*> columns)
      : statement_(database, text(table, columns)) {}

  template <typename... Values>
  void row(const Values&... values) {
    int place = 0;
    (bind(++place, values), ...);
    statement_.exec();
    statement_.reset();
  }

 private:
  static std::string text(const std::string& table, std::initializer_list<const char*> columns) {
    std::string names;
    std::string marks;
    for (const char* column : columns) {
      names += (names.empty() ? "\"" : ",\"") + std::string(column) + '"';
      marks += marks.empty() ? "?" : ",?";
    }
    return "INSERT INTO \"" + table + "\" (" + names + ") VALUES (" + marks + ")";
  }
  template <typename Value>
  void bind(int place, const Value& value) {
    if constexpr (std::is_same_v<Value, MaybeNumber>) {
      if (value) {
        statement_.bind(place, *value);
      } else {
        statement_.bind(place);
      }
    } else if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>) {
      statement_.bind(place, static_cast<std::int64_t>(value));
    } else if constexpr (std::is_floating_point_v<Value>) {
      statement_.bind(place, value);
    } else {
      statement_.bind(place, std::string(value));
    }
  }

  SQLite::Statement statement_;
};

MaybeNumber unless(std::int64_t value, std::int64_t none) { return value == none ? MaybeNumber{} : MaybeNumber{value}; }

class SqliteWriter {
 public:
  SqliteWriter(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
               SQLite::Database& database)
      : trace_(trace), events_(trace.events()), quality_(quality), attribution_(attribution), database_(database) {}

  void write() {
    // A file that is thrown away when anything fails needs no journal.
    database_.exec("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;");
    SQLite::Transaction transaction(database_);
    database_.exec(kTraceTables);
    write_descriptions();
    write_kernels();
    write_copies_and_sets();
    write_graphs();
    write_calls();
    write_waits();
    write_overheads();
    write_spans();
    write_counters();
    write_steps();
    write_gaps();
    write_nodes();
    write_quality();
    // Strings and threads come last: writing the rows above adds to them.
    write_strings();
    write_threads();
    database_.exec(kTraceIndexes);
    transaction.commit();
  }

 private:
  std::int64_t global_process(std::int64_t process) { return short_id(processes_, process) << kGlobalIdBits; }

  std::int64_t global_thread(std::int64_t process, std::int64_t thread) {
    const std::int64_t global = global_process(process) | short_id(threads_, thread);
    threads_seen_.insert({global, {process, thread}});
    return global;
  }

  // Returns the id itself where it fits and is free, else the highest free one.
  static std::int64_t short_id(std::map<std::int64_t, std::int64_t>& ids, std::int64_t id) {
    const auto [place, is_new] = ids.try_emplace(id, id);
    if (is_new && (id < 0 || id >= kGlobalIdLimit)) {
      place->second = kGlobalIdLimit - static_cast<std::int64_t>(ids.size());
    }
    return place->second;
  }

  std::int64_t string_id(const std::string& text) {
    const auto [place, is_new] =
        own_strings_.try_emplace(text, static_cast<std::int64_t>(events_.strings.size() + own_strings_.size()));
    return place->second;
  }

  void write_descriptions() {
    const TraceSession& session = events_.session;
    Insert exported(database_, "META_DATA_EXPORT", {"name", "value"});
    exported.row("EXPORTER", kExporter);
    exported.row("EXPORT_TABLES_AS", std::string("nsys ") + kNsysShape);
    exported.row("EXPORT_SCHEMA_VERSION", kNsysShape);
    Insert captured(database_, "META_DATA_CAPTURE", {"name", "value"});
    captured.row(kSessionKey, session_text(trace_, quality_, 0));
    captured.row("SOURCE", session.source);
    captured.row("MODEL", session.model);
    captured.row("ARM", session.arm);
    captured.row("CELL", session.cell);
    Insert gpu(database_, "TARGET_INFO_GPU",
               {"vmId", "id", "name", "totalMemory", "memoryBandwidth", "smCount", "cuDevice", "computeMajor",
                "computeMinor"});
    for (const TraceDevice& device : session.devices) {
      gpu.row(0, device.index, device.name, device.memory_bytes,
              static_cast<std::int64_t>(device.nominal_bytes_per_second), device.multiprocessors, device.index,
              device.compute_major, device.compute_minor);
    }
    Insert start(database_, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
    // The Unix time of time 0 of the trace.
    start.row(session.unix_offset_ns);
  }

  void write_kernels() {
    Insert insert(database_, "CUPTI_ACTIVITY_KIND_KERNEL",
                  {"start",
                   "end",
                   "deviceId",
                   "contextId",
                   "streamId",
                   "correlationId",
                   "globalPid",
                   "demangledName",
                   "shortName",
                   "registersPerThread",
                   "gridX",
                   "gridY",
                   "gridZ",
                   "blockX",
                   "blockY",
                   "blockZ",
                   "staticSharedMemory",
                   "dynamicSharedMemory",
                   "localMemoryPerThread",
                   "localMemoryTotal",
                   "gridId",
                   "graphNodeId",
                   "graphId",
                   "lane",
                   "step",
                   "layer",
                   "stage"});
    for (const DeviceOperation& row : events_.operations) {
      if (row.kind != DeviceOperationKind::kernel) {
        continue;
      }
      insert.row(row.start_ns, row.end_ns, row.device, row.context, row.stream, row.correlation,
                 global_process(row.process), row.name, row.name, row.registers, row.grid[0], row.grid[1], row.grid[2],
                 row.block[0], row.block[1], row.block[2], row.static_shared_bytes, row.dynamic_shared_bytes, 0, 0, 0,
                 node(row), graph(row), row.lane, unless(row.step, kNoStep), unless(row.layer, kNoLayer),
                 name_of(kStageNames, row.stage));
    }
  }

  static MaybeNumber node(const DeviceOperation& row) {
    return unless(static_cast<std::int64_t>(row.graph_node_id), kNoGraph);
  }
  static MaybeNumber graph(const DeviceOperation& row) {
    return unless(static_cast<std::int64_t>(row.graph_id), kNoGraph);
  }

  void write_copies_and_sets() {
    Insert copies(database_, "CUPTI_ACTIVITY_KIND_MEMCPY",
                  {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes",
                   "copyKind", "graphNodeId", "graphId", "nameId", "lane", "step", "layer", "stage"});
    Insert sets(database_, "CUPTI_ACTIVITY_KIND_MEMSET",
                {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes", "value",
                 "graphNodeId", "graphId", "nameId", "lane", "step", "layer", "stage"});
    for (const DeviceOperation& row : events_.operations) {
      if (row.kind != DeviceOperationKind::copy && row.kind != DeviceOperationKind::set) {
        continue;
      }
      const bool copy = row.kind == DeviceOperationKind::copy;
      (copy ? copies : sets)
          .row(row.start_ns, row.end_ns, row.device, row.context, row.stream, row.correlation,
               global_process(row.process), row.bytes, copy ? row.copy_kind : 0, node(row), graph(row), row.name,
               row.lane, unless(row.step, kNoStep), unless(row.layer, kNoLayer), name_of(kStageNames, row.stage));
    }
  }

  void write_graphs() {
    Insert insert(database_, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                  {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId",
                   "nameId", "lane", "step", "layer", "stage"});
    for (const DeviceOperation& row : events_.operations) {
      if (row.kind != DeviceOperationKind::graph) {
        continue;
      }
      insert.row(row.start_ns, row.end_ns, row.device, row.context, row.stream, row.correlation,
                 global_process(row.process), static_cast<std::int64_t>(row.graph_id), row.name, row.lane,
                 unless(row.step, kNoStep), unless(row.layer, kNoLayer), name_of(kStageNames, row.stage));
    }
  }

  void write_calls() {
    Insert insert(
        database_, "CUPTI_ACTIVITY_KIND_RUNTIME",
        {"start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callbackId", "kind"});
    for (const ApiCall& row : events_.api_calls) {
      insert.row(row.start_ns, row.end_ns, row.driver ? kDriverClass : kRuntimeClass,
                 global_thread(row.process, row.thread), row.correlation, row.name, row.result, row.callback_id,
                 name_of(kApiKindNames, row.kind));
    }
  }

  void write_waits() {
    Insert insert(database_, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                  {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "syncType",
                   "eventId", "globalTid"});
    for (const Wait& row : events_.waits) {
      insert.row(row.start_ns, row.end_ns, 0, 0, row.stream, row.correlation, global_process(row.process), row.kind,
                 row.event, global_thread(row.process, row.thread));
    }
  }

  void write_overheads() {
    Insert insert(database_, "CUPTI_ACTIVITY_KIND_OVERHEAD",
                  {"start", "end", "eventClass", "globalTid", "correlationId", "nameId", "overheadType"});
    for (const Overhead& row : events_.overheads) {
      insert.row(row.start_ns, row.end_ns, kOverheadClass, global_thread(events_.session.process, row.thread), 0,
                 string_id(name_of(kOverheadNames, row.kind)), row.kind);
    }
  }

  void write_spans() {
    Insert insert(database_, "NVTX_EVENTS",
                  {"start", "end", "eventType", "textId", "globalTid", "domainId", "uint64Value", "kind", "step",
                   "layer", "stage", "depth", "allocations", "allocatedBytes", "expectedBytes", "expectedFlops"});
    for (const HostSpan& row : events_.spans) {
      const MaybeNumber step = unless(row.step, kNoStep);
      insert.row(row.start_ns, unless(row.end_ns, 0), kPushPopRange, row.name,
                 global_thread(events_.session.process_of(row.process), row.thread), 0, step,
                 name_of(kSpanKindNames, row.kind), step, unless(row.layer, kNoLayer), name_of(kStageNames, row.stage),
                 row.depth, row.allocations, row.allocated_bytes, row.expected_bytes, row.expected_flops);
    }
  }

  void write_counters() {
    Insert insert(database_, "COUNTER", {"time", "seriesId", "value"});
    for (const CounterPoint& row : events_.counters) {
      insert.row(row.time_ns, row.series, row.value);
    }
  }

  void write_steps() {
    std::map<std::int32_t, const StepAccount*> accounts;
    for (const StepAccount& account : attribution_.steps) {
      accounts.emplace(account.index, &account);
    }
    Insert insert(database_, "STEP",
                  {"step", "start", "end", "batch", "keys", "launches", "graphLaunches", "timerNs", "excludedReason",
                   "deviceStart", "deviceEnd", "spanNs", "busyNs", "residualNs", "hostMarginNs", "launchToStartNs",
                   "operators", "graphKernelNs"});
    for (const Step& row : events_.steps) {
      const auto found = accounts.find(row.index);
      const auto of = [&](std::int64_t StepAccount::* member) {
        return found == accounts.end() ? MaybeNumber{} : MaybeNumber{found->second->*member};
      };
      insert.row(row.index, row.start_ns, row.end_ns, row.batch, row.keys, unless(row.launches, -1),
                 unless(row.graph_launches, -1), unless(row.timer_ns, 0), row.excluded_reason,
                 unless(row.device_start_ns, 0), unless(row.device_end_ns, 0), of(&StepAccount::span_ns),
                 of(&StepAccount::busy_ns), of(&StepAccount::residual_ns), of(&StepAccount::host_margin_ns),
                 of(&StepAccount::launch_to_start_ns), of(&StepAccount::operators), of(&StepAccount::graph_kernel_ns));
    }
  }

  void write_gaps() {
    Insert insert(database_, "GAP", {"step", "deviceId", "start", "end", "cause", "nextStart", "nextName"});
    for (const Gap& row : attribution_.gaps) {
      const bool has_next = row.next_operation != kNoRow;
      const DeviceOperation next =
          has_next ? events_.operations.at(static_cast<std::size_t>(row.next_operation)) : DeviceOperation{};
      insert.row(unless(row.step, kNoStep), row.device, row.start_ns, row.end_ns, name_of(kGapCauseNames, row.cause),
                 has_next ? MaybeNumber{next.start_ns} : MaybeNumber{}, trace_.text(next.name));
    }
  }

  void write_nodes() {
    Insert insert(database_, "NODE", {"graphId", "nodeId", "originalNodeId", "layer", "stage"});
    for (const GraphNode& row : events_.nodes) {
      insert.row(static_cast<std::int64_t>(row.graph_id), static_cast<std::int64_t>(row.node_id),
                 unless(static_cast<std::int64_t>(row.original_node_id), 0), unless(row.layer, kNoLayer),
                 name_of(kStageNames, row.stage));
    }
  }

  void write_quality() {
    Insert insert(database_, "QUALITY", {"id", "title", "status", "value", "threshold", "evidence"});
    insert.row("verdict", "verdict", to_string(quality_.verdict), 0.0, 0.0, quality_.reason);
    for (const TraceCheck& check : quality_.checks) {
      insert.row(check.id, check.title, to_string(check.status), check.value, check.limit, check.evidence);
    }
    if (!attribution_.believable) {
      insert.row("attribution", "account of the gaps", "refused", 0.0, 0.0, attribution_.refusal);
    }
  }

  void write_strings() {
    Insert insert(database_, "StringIds", {"id", "value"});
    for (std::size_t id = 0; id < events_.strings.size(); ++id) {
      insert.row(id, trace_.text(static_cast<StringId>(id)));
    }
    for (const auto& [text, id] : own_strings_) {
      insert.row(id, text);
    }
  }

  void write_threads() {
    Insert insert(database_, "THREAD", {"globalTid", "process", "thread"});
    global_thread(events_.session.process, events_.session.main_thread);
    for (const DeviceOperation& row : events_.operations) {
      global_process(row.process);
    }
    for (const auto& [process, shortened] : processes_) {
      threads_seen_.insert({shortened << kGlobalIdBits, {process, 0}});
    }
    for (const auto& [global, ids] : threads_seen_) {
      insert.row(global, ids.first, ids.second);
    }
  }

  const Trace& trace_;
  const TraceEvents& events_;
  const TraceQuality& quality_;
  const Attribution& attribution_;
  SQLite::Database& database_;
  std::map<std::int64_t, std::int64_t> processes_;
  std::map<std::int64_t, std::int64_t> threads_;
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> threads_seen_;
  std::map<std::string, std::int64_t> own_strings_;
};

}  // namespace

void write_trace_sqlite(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
                        const std::filesystem::path& path) {
  try {
    SQLite::Database database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    SqliteWriter(trace, quality, attribution, database).write();
  } catch (const SQLite::Exception& error) {
    throw std::runtime_error("The trace could not be written to " + path.string() + ": SQLite says '" + error.what() +
                             "'.");
  }
}

}  // namespace decodelab
