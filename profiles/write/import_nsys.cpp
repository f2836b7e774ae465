// Turns the tables of nsys into rows of a trace, one table in each function.
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiles/write/formats.h"
#include "profiles/write/import_trace.h"
#include "profiles/write/nsys_numbers.h"
#include "profiles/write/nsys_words.h"
#include "profiles/write/rows.h"
#include "profiles/write/session_text.h"
#include "profiles/write/sqlite_table.h"

namespace decodelab {
namespace {

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kSets = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* kWaits = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr const char* kOverheads = "CUPTI_ACTIVITY_KIND_OVERHEAD";
constexpr const char* kRanges = "NVTX_EVENTS";

class NsysReader {
 public:
  NsysReader(const std::filesystem::path& path, ImportedRows& rows)
      : rows_(rows), events_(rows.events()), source_(path) {}

  void read() {
    check_tables();
    read_session();
    read_strings();
    read_threads();
    read_calls();
    read_kernels();
    read_copies();
    read_graphs();
    read_waits();
    read_overheads();
    read_ranges();
    read_counters();
    if (!ours_) {
      complete_processes();
    }
    for (HostSpan& span : events_.spans) {
      if (span.process == events_.session.process) {
        span.process = 0;
      }
    }
    if (!ours_) {
      complete_foreign(events_);
    }
  }

 private:
  void check_tables() const {
    bool any = false;
    for (const char* table : {kKernels, kGraphs, kCalls, kRanges, kCopies, kSets, kWaits, kOverheads}) {
      if (!source_.has(table)) {
        continue;
      }
      any = true;
      if (!source_.has(table, {"start", "end"})) {
        rows_.refuse(std::string("has a table ") + table + " without start and end, which no version of nsys writes");
      }
    }
    if (!any) {
      rows_.refuse("is a SQLite file, but no export of nsys: none of the tables of its CUDA or NVTX events is there");
    }
  }

  TableReader table(const char* name, std::vector<std::string> columns) { return {source_, name, std::move(columns)}; }

  void read_session() {
    std::map<std::string, std::string> facts;
    for (const char* name : {"META_DATA_EXPORT", "META_DATA_CAPTURE"}) {
      if (!source_.has(name, {"name", "value"})) {
        continue;
      }
      TableReader pairs = table(name, {"name", "value"});
      while (pairs.next() && facts.size() < kMostFacts) {
        facts.emplace(pairs.text("name"), pairs.text("value"));
      }
    }
    if (const auto own = facts.find(kSessionKey); own != facts.end()) {
      try {
        read_session_text(own->second, events_);
      } catch (const std::runtime_error& error) {
        std::string reason = error.what();
        if (reason.ends_with('.')) {
          reason.pop_back();
        }
        rows_.refuse("is damaged: " + reason);
      }
      ours_ = true;
      return;
    }
    TraceSession& session = events_.session;
    session.source = "nsys " + facts["EXPORT_PRODUCT_VERSION"];
    if (facts["EXPORT_PRODUCT_VERSION"].empty()) {
      session.source = "nsys";
    }
    session.clock = "nsys";
    if (!facts["EXPORT_SCHEMA_VERSION"].empty()) {
      session.versions.emplace_back("nsys schema", facts["EXPORT_SCHEMA_VERSION"]);
    }
    if (source_.has("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"})) {
      TableReader start = table("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
      if (start.next()) {
        session.unix_offset_ns = rows_.time(start.number("utcEpochNs"));
      }
    }
    read_devices();
  }

  void read_devices() {
    if (!source_.has("TARGET_INFO_GPU")) {
      return;
    }
    TableReader gpus = table("TARGET_INFO_GPU", {"id", "cuDevice", "name", "totalMemory", "smCount", "memoryBandwidth",
                                                 "computeMajor", "computeMinor"});
    while (gpus.next() && events_.session.devices.size() < kMostFacts) {
      events_.session.devices.push_back(
          {.index = number32(gpus, gpus.has("cuDevice") ? "cuDevice" : "id"),
           .name = gpus.text("name"),
           .memory_bytes = gpus.number("totalMemory"),
           .multiprocessors = number32(gpus, "smCount"),
           .compute_major = number32(gpus, "computeMajor"),
           .compute_minor = number32(gpus, "computeMinor"),
           .nominal_bytes_per_second = static_cast<double>(gpus.number("memoryBandwidth"))});
    }
  }

  void read_strings() {
    if (!source_.has("StringIds", {"id", "value"})) {
      return;
    }
    TableReader strings = table("StringIds", {"id", "value"});
    std::int64_t count = 0;
    while (strings.next()) {
      if (++count > kMostTexts) {
        rows_.refuse("has more than " + std::to_string(kMostTexts) + " texts");
      }
      texts_[strings.number("id")] = rows_.text(strings.text("value"));
    }
  }

  void read_threads() {
    if (!ours_ || !source_.has("THREAD", {"globalTid", "process", "thread"})) {
      return;
    }
    TableReader threads = table("THREAD", {"globalTid", "process", "thread"});
    while (threads.next()) {
      rows_.count();
      threads_[threads.number("globalTid")] = {threads.number("process"), threads.number("thread")};
    }
  }

  StringId text_of(const TableReader& row, std::string_view column) const {
    const auto found = texts_.find(row.number(column, -1));
    return found == texts_.end() ? 0 : found->second;
  }
  const std::string& text(StringId id) const { return events_.strings.text(id); }

  std::int32_t number32(const TableReader& row, std::string_view column, std::int32_t otherwise = 0) const {
    return rows_.number<std::int32_t>(row.number(column, otherwise), column);
  }
  std::uint32_t unsigned32(const TableReader& row, std::string_view column) const {
    return rows_.number<std::uint32_t>(row.number(column), column);
  }

  // Counts the row and reads its times. A row without times is only counted in the session, except in our own files,
  // whose rows are kept as they were.
  bool times(const TableReader& row, std::int64_t& start_ns, std::int64_t& end_ns) {
    rows_.count();
    start_ns = row.number("start");
    end_ns = row.number("end");
    if (ours_) {
      return true;
    }
    if (start_ns == 0 && end_ns == 0) {
      ++events_.session.zero_times;
      return false;
    }
    rows_.time(start_ns);
    rows_.time(end_ns);
    return true;
  }

  std::pair<std::int64_t, std::int64_t> ids_of(std::int64_t global) const {
    if (const auto found = threads_.find(global); found != threads_.end()) {
      return found->second;
    }
    return {global >> kGlobalIdBits & (kGlobalIdLimit - 1), global & (kGlobalIdLimit - 1)};
  }

  // Returns the process of a row of a device, or nothing in versions that do not say.
  std::optional<std::int64_t> process_of(const TableReader& row) const {
    if (!row.has("globalPid")) {
      return std::nullopt;
    }
    return ids_of(row.number("globalPid")).first;
  }

  void read_calls() {
    if (!source_.has(kCalls)) {
      return;
    }
    TableReader row = table(kCalls, {"start", "end", "eventClass", "globalTid", "correlationId", "nameId",
                                     "returnValue", "callbackId", "kind"});
    ApiCall call;
    while (row.next()) {
      if (!times(row, call.start_ns, call.end_ns)) {
        continue;
      }
      std::tie(call.process, call.thread) = ids_of(row.number("globalTid"));
      call.correlation = unsigned32(row, "correlationId");
      call.callback_id = unsigned32(row, "callbackId");
      call.name = text_of(row, "nameId");
      const std::string& name = text(call.name);
      call.kind = named<ApiKind>(kApiKindNames, row.text("kind")).value_or(api_kind(name));
      call.driver =
          ours_ ? row.number("eventClass") == kDriverClass : name.starts_with("cu") && !name.starts_with("cuda");
      call.result = number32(row, "returnValue");
      events_.api_calls.push_back(call);
    }
  }

  static constexpr const char* kPlaceColumns[] = {"start",       "end",           "deviceId",  "contextId",
                                                  "streamId",    "correlationId", "globalPid", "graphId",
                                                  "graphNodeId", "step",          "layer",     "stage"};

  static std::vector<std::string> with_place(std::vector<std::string> columns) {
    columns.insert(columns.end(), std::begin(kPlaceColumns), std::end(kPlaceColumns));
    return columns;
  }

  // Reads the columns that all rows of devices have.
  bool read_place(const TableReader& row, DeviceOperation& operation) {
    if (!times(row, operation.start_ns, operation.end_ns)) {
      return false;
    }
    const auto process = process_of(row);
    if (!process) {
      without_process_.push_back(events_.operations.size());
    }
    operation.process = process.value_or(0);
    operation.device = number32(row, "deviceId");
    operation.context = number32(row, "contextId");
    operation.stream = number32(row, "streamId");
    operation.correlation = unsigned32(row, "correlationId");
    operation.graph_id = static_cast<std::uint64_t>(row.number("graphId"));
    operation.graph_node_id = static_cast<std::uint64_t>(row.number("graphNodeId"));
    // Tables of copies and sets name the node of a graph, but not the graph.
    if (!ours_ && operation.graph_id == 0 && operation.graph_node_id != 0) {
      operation.graph_id = kUnknownGraph;
    }
    operation.step = number32(row, "step", kNoStep);
    operation.layer = number32(row, "layer", kNoLayer);
    operation.stage = named<Stage>(kStageNames, row.text("stage")).value_or(Stage::other);
    return true;
  }

  void read_kernels() {
    if (!source_.has(kKernels)) {
      return;
    }
    TableReader row =
        table(kKernels, with_place({"demangledName", "shortName", "registersPerThread", "gridX", "gridY", "gridZ",
                                    "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"}));
    while (row.next()) {
      DeviceOperation kernel;
      if (!read_place(row, kernel)) {
        continue;
      }
      kernel.name = text_of(row, row.has("demangledName") ? "demangledName" : "shortName");
      kernel.grid = {number32(row, "gridX"), number32(row, "gridY"), number32(row, "gridZ")};
      kernel.block = {number32(row, "blockX"), number32(row, "blockY"), number32(row, "blockZ")};
      kernel.registers = number32(row, "registersPerThread");
      kernel.static_shared_bytes = number32(row, "staticSharedMemory");
      kernel.dynamic_shared_bytes = number32(row, "dynamicSharedMemory");
      events_.operations.push_back(kernel);
    }
  }

  void read_copies() {
    for (const char* name : {kCopies, kSets}) {
      if (!source_.has(name)) {
        continue;
      }
      const bool copies = name == kCopies;
      TableReader row = table(name, with_place({"bytes", "copyKind", "nameId"}));
      while (row.next()) {
        DeviceOperation operation;
        if (!read_place(row, operation)) {
          continue;
        }
        operation.kind = copies ? DeviceOperationKind::copy : DeviceOperationKind::set;
        operation.bytes = row.number("bytes");
        if (copies) {
          operation.copy_kind = number32(row, "copyKind");
        }
        operation.name =
            row.has("nameId") ? text_of(row, "nameId") : rows_.text(copies ? copy_name(operation.copy_kind) : "Memset");
        events_.operations.push_back(operation);
      }
    }
  }

  static const char* copy_name(std::int32_t kind) {
    switch (kind) {
      case 1: return "Memcpy HtoD";
      case 2: return "Memcpy DtoH";
      case 8: return "Memcpy DtoD";
      default: return "Memcpy";
    }
  }

  void read_graphs() {
    if (!source_.has(kGraphs)) {
      return;
    }
    TableReader row = table(kGraphs, with_place({"nameId"}));
    while (row.next()) {
      DeviceOperation graph;
      if (!read_place(row, graph)) {
        continue;
      }
      graph.kind = DeviceOperationKind::graph;
      graph.name = row.has("nameId") ? text_of(row, "nameId") : rows_.text("graph " + std::to_string(graph.graph_id));
      events_.operations.push_back(graph);
    }
  }

  void read_waits() {
    if (!source_.has(kWaits)) {
      return;
    }
    // nsys says which process waited, but only the call says which thread.
    std::map<std::pair<std::int64_t, std::uint32_t>, std::int64_t> threads;
    for (const ApiCall& call : events_.api_calls) {
      threads.try_emplace({call.process, call.correlation}, call.thread);
    }
    TableReader row =
        table(kWaits, {"start", "end", "streamId", "correlationId", "globalPid", "syncType", "eventId", "globalTid"});
    while (row.next()) {
      Wait wait;
      if (!times(row, wait.start_ns, wait.end_ns)) {
        continue;
      }
      // A value with all bits set means no stream or no event.
      wait.stream = static_cast<std::int32_t>(row.number("streamId"));
      wait.event = static_cast<std::uint32_t>(row.number("eventId"));
      wait.correlation = unsigned32(row, "correlationId");
      const std::int64_t kind = row.number("syncType", static_cast<std::int64_t>(WaitKind::stream));
      wait.kind = kind >= 1 && kind < static_cast<std::int64_t>(kWaitNames.size()) ? static_cast<WaitKind>(kind)
                                                                                   : WaitKind::stream;
      if (row.has("globalTid")) {
        std::tie(wait.process, wait.thread) = ids_of(row.number("globalTid"));
      } else {
        wait.process = process_of(row).value_or(0);
        const auto found = threads.find({wait.process, wait.correlation});
        wait.thread = found == threads.end() ? 0 : found->second;
      }
      events_.waits.push_back(wait);
    }
  }

  void read_overheads() {
    if (!source_.has(kOverheads)) {
      return;
    }
    TableReader row = table(kOverheads, {"start", "end", "globalTid", "nameId", "overheadType"});
    while (row.next()) {
      Overhead overhead;
      if (!times(row, overhead.start_ns, overhead.end_ns)) {
        continue;
      }
      overhead.thread = ids_of(row.number("globalTid")).second;
      const std::string& name = text(text_of(row, "nameId"));
      // nsys numbers overheads differently from CUPTI, but gives them CUPTI's names.
      overhead.kind = named<OverheadKind>(kOverheadNames, name).value_or(overhead_kind(name));
      events_.overheads.push_back(overhead);
    }
  }

  void read_ranges() {
    if (!source_.has(kRanges)) {
      return;
    }
    TableReader row =
        table(kRanges, {"start", "end", "eventType", "text", "textId", "globalTid", "uint64Value", "kind", "step",
                        "layer", "stage", "allocations", "allocatedBytes", "expectedBytes", "expectedFlops"});
    while (row.next()) {
      if (row.number("eventType", kPushPopRange) != kPushPopRange) {
        continue;
      }
      HostSpan span;
      if (!times(row, span.start_ns, span.end_ns)) {
        continue;
      }
      const auto [process, thread] = ids_of(row.number("globalTid"));
      if (!first_process_) {
        first_process_ = process;
      }
      span.thread = thread;
      span.process = process;
      span.name = row.has("textId") ? text_of(row, "textId") : rows_.text(row.text("text"));
      if (ours_) {
        read_own_columns(row, span);
      } else {
        const RangeMeaning meaning = meaning_of(text(span.name));
        span.kind = meaning.kind;
        span.stage = meaning.stage;
        if (meaning.kind == SpanKind::layer) {
          span.layer = meaning.number;
        }
        if (meaning.kind == SpanKind::step) {
          span.step = meaning.number >= 0 ? meaning.number : number32(row, "uint64Value", kNoStep);
        }
      }
      events_.spans.push_back(span);
    }
  }

  void read_own_columns(const TableReader& row, HostSpan& span) const {
    span.kind = named<SpanKind>(kSpanKindNames, row.text("kind")).value_or(SpanKind::other);
    span.step = number32(row, "step", kNoStep);
    span.layer = number32(row, "layer", kNoLayer);
    span.stage = named<Stage>(kStageNames, row.text("stage")).value_or(Stage::other);
    span.allocations = row.number("allocations");
    span.allocated_bytes = row.number("allocatedBytes");
    span.expected_bytes = row.number("expectedBytes");
    span.expected_flops = row.number("expectedFlops");
  }

  void read_counters() {
    if (!ours_ || !source_.has("COUNTER", {"time", "seriesId", "value"})) {
      return;
    }
    TableReader row = table("COUNTER", {"time", "seriesId", "value"});
    while (row.next()) {
      rows_.count();
      events_.counters.push_back(
          {.time_ns = row.number("time"), .series = text_of(row, "seriesId"), .value = row.real("value")});
    }
  }

  // In versions without globalPid, the process of a kernel is known only where there is one process.
  void complete_processes() {
    std::set<std::int64_t> processes;
    for (const ApiCall& call : events_.api_calls) {
      processes.insert(call.process);
    }
    if (!without_process_.empty() && processes.size() > 1) {
      rows_.refuse("has calls of " + std::to_string(processes.size()) +
                   " processes and kernels that do not say whose they are: their correlation ids cannot be matched");
    }
    const std::int64_t only = processes.empty() ? first_process_.value_or(0) : *processes.begin();
    for (const std::size_t row : without_process_) {
      events_.operations[row].process = only;
    }
    events_.session.process = first_process_.value_or(only);
  }

  static constexpr std::uint64_t kUnknownGraph = 1;
  static constexpr std::size_t kMostFacts = 1024;
  static constexpr std::int64_t kMostTexts = std::int64_t{1} << 24;

  ImportedRows& rows_;
  TraceEvents& events_;
  SqliteSource source_;
  bool ours_ = false;
  std::unordered_map<std::int64_t, StringId> texts_;
  std::unordered_map<std::int64_t, std::pair<std::int64_t, std::int64_t>> threads_;
  std::vector<std::size_t> without_process_;
  std::optional<std::int64_t> first_process_;
};

}  // namespace

TraceEvents import_nsys(const std::filesystem::path& path, const ImportLimits& limits) {
  ImportedRows rows(path, limits);
  try {
    NsysReader(path, rows).read();
  } catch (const SQLite::Exception& error) {
    rows.refuse(std::string("cannot be read as SQLite, which says '") + error.what() + "'");
  }
  return std::move(rows.events());
}

}  // namespace decodelab
