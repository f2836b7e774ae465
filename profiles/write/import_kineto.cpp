// Turns the events of a kineto file into rows of a trace.
#include <array>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiles/write/import_trace.h"
#include "profiles/write/kineto_parser.h"
#include "profiles/write/rows.h"
#include "profiles/write/session_text.h"

namespace decodelab {
namespace {

constexpr std::string_view kStepName = "ProfilerStep#";
constexpr std::array<const char*, 4> kOperationCategories{"kernel", "gpu_memcpy", "gpu_memset", "cuda_graph"};

class KinetoReader {
 public:
  KinetoReader(const std::filesystem::path& path, const ImportLimits& limits)
      : path_(path), most_value_bytes_(limits.most_value_bytes), rows_(path, limits), events_(rows_.events()) {}

  TraceEvents read() {
    KinetoFile file;
    try {
      file = parse_kineto(path_, most_value_bytes_, [this](KinetoEvent& event) { take(event); });
    } catch (const ImportRefusal&) {
      throw;
    } catch (const std::runtime_error& error) {
      rows_.refuse(error.what());
    }
    const bool ours = !file.head.session_text.empty();
    if (ours) {
      read_session(file.head.session_text);
    } else {
      events_.session.source = "kineto";
      events_.session.clock = "unix";
      events_.session.devices = std::move(file.devices);
      events_.session.process = process_.value_or(0);
    }
    shift(file.head.base_ns.value_or(0) - events_.session.unix_offset_ns);
    for (HostSpan& span : events_.spans) {
      if (span.process == events_.session.process) {
        span.process = 0;
      }
    }
    for (const std::size_t row : unknown_process_) {
      events_.operations[row].process = events_.session.process;
    }
    find_threads_of_waits();
    if (ours) {
      drop_step_spans();
    } else {
      complete_foreign(events_);
    }
    return std::move(events_);
  }

 private:
  void read_session(const std::string& text) {
    TraceEvents described;
    try {
      read_session_text(text, described);
    } catch (const std::runtime_error& error) {
      std::string reason = error.what();
      if (reason.ends_with('.')) {
        reason.pop_back();
      }
      rows_.refuse("is damaged: " + reason);
    }
    events_.session = std::move(described.session);
    events_.steps = std::move(described.steps);
    events_.nodes = std::move(described.nodes);
  }

  // Adds the base of the file to its times, which are relative to it.
  void shift(std::int64_t base_ns) {
    const auto moved = [&](std::int64_t time_ns) {
      std::int64_t sum = 0;
      if (__builtin_add_overflow(time_ns, base_ns, &sum)) {
        sum = std::numeric_limits<std::int64_t>::max();
      }
      // Times of our own files may lie before 0, where a clock was moved.
      return events_.session.source == "kineto" || sum > 0 ? rows_.time(sum) : sum;
    };
    const auto all = [&](auto& rows) {
      for (auto& row : rows) {
        row.start_ns = moved(row.start_ns);
        row.end_ns = moved(row.end_ns);
      }
    };
    all(events_.spans);
    all(events_.api_calls);
    all(events_.operations);
    all(events_.waits);
    all(events_.overheads);
    for (CounterPoint& point : events_.counters) {
      point.time_ns = moved(point.time_ns);
    }
    for (const auto& [end_ns, value] : own_ends_) {
      *end_of(end_ns) = value;
    }
  }

  enum class Table : std::uint8_t { span, call, operation, wait, overhead };
  using RowOf = std::pair<Table, std::size_t>;

  std::int64_t* end_of(const RowOf& row) {
    switch (row.first) {
      case Table::span: return &events_.spans[row.second].end_ns;
      case Table::call: return &events_.api_calls[row.second].end_ns;
      case Table::operation: return &events_.operations[row.second].end_ns;
      case Table::wait: return &events_.waits[row.second].end_ns;
      default: return &events_.overheads[row.second].end_ns;
    }
  }

  void take(KinetoEvent& event) {
    if (event.phase == "C") {
      return take_counter(event);
    }
    if (event.phase != "X" || event.category.empty()) {
      return;
    }
    for (std::size_t kind = 0; kind < kOperationCategories.size(); ++kind) {
      if (event.category == kOperationCategories[kind]) {
        return take_operation(event, static_cast<DeviceOperationKind>(kind));
      }
    }
    if (event.category == "cpu_op" || event.category == "user_annotation") {
      return take_span(event);
    }
    if (event.category == "cuda_runtime" || event.category == "cuda_driver") {
      return take_call(event);
    }
    if (event.category == "cuda_sync") {
      return take_wait(event);
    }
    if (event.category == "overhead") {
      return take_overhead(event);
    }
  }

  // Returns start and end of an event, and refuses one that lacks either.
  std::pair<std::int64_t, std::int64_t> times(const KinetoEvent& event) {
    rows_.count();
    if (!event.start_ns || !event.duration_ns || *event.duration_ns < 0 || *event.start_ns < -kLatestTime ||
        *event.start_ns + *event.duration_ns > kLatestTime) {
      rows_.refuse("has an event '" + event.name.substr(0, 80) + "' of category " + event.category.substr(0, 80) +
                   " whose ts and dur are no times");
    }
    return {*event.start_ns, *event.start_ns + *event.duration_ns};
  }

  void note_end(const KinetoEvent& event, RowOf row) {
    if (event.has_number("end_ns")) {
      own_ends_.emplace_back(row, event.number("end_ns"));
    }
  }

  std::int64_t thread(const KinetoEvent& event) const { return event.thread.value_or(0); }

  std::int32_t number32(const KinetoEvent& event, const char* key, std::int32_t otherwise = 0) const {
    return rows_.number<std::int32_t>(event.number(key, otherwise), key);
  }
  std::uint32_t correlation(const KinetoEvent& event) const {
    return rows_.number<std::uint32_t>(event.number("correlation"), "correlation");
  }
  static Stage stage(const KinetoEvent& event) {
    return named<Stage>(kStageNames, event.text("stage")).value_or(Stage::other);
  }

  void note_process(const KinetoEvent& event) {
    if (!process_ && event.process) {
      process_ = event.process;
    }
  }

  void take_span(KinetoEvent& event) {
    const auto [start, end] = times(event);
    note_process(event);
    HostSpan span{.start_ns = start,
                  .end_ns = end,
                  .thread = thread(event),
                  .step = number32(event, "step", kNoStep),
                  .layer = number32(event, "layer", kNoLayer),
                  .stage = stage(event),
                  .allocations = event.number("allocations"),
                  .allocated_bytes = event.number("allocated_bytes"),
                  .expected_bytes = event.number("expected_bytes"),
                  .expected_flops = event.number("expected_flops")};
    span.kind = event.category == "cpu_op"
                    ? SpanKind::operator_call
                    : named<SpanKind>(kSpanKindNames, event.text("kind")).value_or(SpanKind::other);
    if (event.category != "cpu_op" && event.name.starts_with(kStepName) && event.text("kind").empty()) {
      std::int32_t index = 0;
      const char* const digits = event.name.data() + kStepName.size();
      const auto [last, error] = std::from_chars(digits, event.name.data() + event.name.size(), index);
      if (error == std::errc() && index >= 0) {
        span.kind = SpanKind::step;
        span.step = index;
        step_spans_.push_back(events_.spans.size());
      }
    }
    span.process = event.process.value_or(0);
    span.name = rows_.text(event.name);
    note_end(event, {Table::span, events_.spans.size()});
    events_.spans.push_back(span);
  }

  // Drops the step spans of our own files, which are made of steps that the session has.
  void drop_step_spans() {
    std::vector<bool> dropped(events_.spans.size());
    for (const std::size_t row : step_spans_) {
      dropped[row] = true;
    }
    std::vector<HostSpan> kept;
    for (std::size_t i = 0; i < dropped.size(); ++i) {
      if (!dropped[i]) {
        kept.push_back(events_.spans[i]);
      }
    }
    events_.spans = std::move(kept);
  }

  void take_call(const KinetoEvent& event) {
    const auto [start, end] = times(event);
    note_process(event);
    note_end(event, {Table::call, events_.api_calls.size()});
    events_.api_calls.push_back(
        {.start_ns = start,
         .end_ns = end,
         .process = event.process.value_or(0),
         .thread = thread(event),
         .correlation = correlation(event),
         .callback_id = rows_.number<std::uint32_t>(event.number("cbid"), "cbid"),
         .name = rows_.text(event.name),
         .kind = named<ApiKind>(kApiKindNames, event.text("kind")).value_or(api_kind(event.name)),
         .driver = event.category == "cuda_driver",
         .result = number32(event, "result")});
  }

  void take_operation(const KinetoEvent& event, DeviceOperationKind kind) {
    const auto [start, end] = times(event);
    const auto device = event.has_number("device") ? number32(event, "device")
                                                   : rows_.number<std::int32_t>(event.process.value_or(0), "device");
    const auto stream = event.has_number("stream") ? number32(event, "stream")
                                                   : rows_.number<std::int32_t>(event.thread.value_or(0), "stream");
    note_end(event, {Table::operation, events_.operations.size()});
    if (!event.has_number("process")) {
      unknown_process_.push_back(events_.operations.size());
    }
    const std::int64_t shared = event.number("shared memory");
    const std::int64_t static_shared = event.number("static shared memory");
    events_.operations.push_back(
        {.start_ns = start,
         .end_ns = end,
         .process = event.number("process"),
         .device = device,
         .context = number32(event, "context"),
         .stream = stream,
         .correlation = correlation(event),
         .graph_id = static_cast<std::uint64_t>(event.number("graph id")),
         .graph_node_id = static_cast<std::uint64_t>(event.number("graph node id")),
         .name = rows_.text(event.name),
         .kind = kind,
         .step = number32(event, "step", kNoStep),
         .layer = number32(event, "layer", kNoLayer),
         .stage = stage(event),
         .grid = extent(event.grid),
         .block = extent(event.block),
         .registers = number32(event, "registers per thread"),
         .static_shared_bytes = rows_.number<std::int32_t>(static_shared, "static shared memory"),
         .dynamic_shared_bytes =
             shared < static_shared ? 0 : rows_.number<std::int32_t>(shared - static_shared, "shared memory"),
         .bytes = event.number("bytes"),
         .copy_kind = number32(event, "copy kind", copy_kind(event.name))});
  }

  static std::int32_t copy_kind(std::string_view name) {
    if (name.starts_with("Memcpy HtoD")) {
      return 1;
    }
    if (name.starts_with("Memcpy DtoH")) {
      return 2;
    }
    if (name.starts_with("Memcpy DtoD")) {
      return 8;
    }
    return 0;
  }

  std::array<std::int32_t, 3> extent(const std::array<std::int64_t, 3>& sizes) const {
    std::array<std::int32_t, 3> extent{};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      extent[i] = rows_.number<std::int32_t>(sizes[i], "grid or block");
    }
    return extent;
  }

  void take_wait(const KinetoEvent& event) {
    const auto [start, end] = times(event);
    const auto place = named<std::size_t>(kWaitNames, event.name).value_or(static_cast<std::size_t>(WaitKind::stream));
    const bool ours = event.has_number("wait_on_stream") && !event.has_number("stream");
    if (!ours) {
      threadless_waits_.push_back(events_.waits.size());
    }
    note_end(event, {Table::wait, events_.waits.size()});
    events_.waits.push_back(
        {.start_ns = start,
         .end_ns = end,
         .process = event.process.value_or(0),
         .thread = thread(event),
         .stream = number32(event, ours ? "wait_on_stream" : "stream"),
         .event = rows_.number<std::uint32_t>(event.number("wait_on_cuda_event_id"), "wait_on_cuda_event_id"),
         .correlation = correlation(event),
         .kind = place == 0 ? WaitKind::stream : static_cast<WaitKind>(place)});
  }

  // Finds the threads of waits. Kineto shows waits on a device; the call with the same correlation says whose thread
  // waited.
  void find_threads_of_waits() {
    std::unordered_map<std::uint32_t, const ApiCall*> calls;
    if (!threadless_waits_.empty()) {
      for (const ApiCall& call : events_.api_calls) {
        calls.emplace(call.correlation, &call);
      }
    }
    for (const std::size_t row : threadless_waits_) {
      Wait& wait = events_.waits[row];
      const auto found = calls.find(wait.correlation);
      wait.process = found == calls.end() ? events_.session.process : found->second->process;
      wait.thread = found == calls.end() ? 0 : found->second->thread;
    }
  }

  void take_overhead(const KinetoEvent& event) {
    const auto [start, end] = times(event);
    note_end(event, {Table::overhead, events_.overheads.size()});
    events_.overheads.push_back(
        {.start_ns = start,
         .end_ns = end,
         .thread = thread(event),
         .kind = named<OverheadKind>(kOverheadNames, event.name).value_or(OverheadKind::instrumentation)});
  }

  void take_counter(const KinetoEvent& event) {
    const auto found = event.arguments.find("value");
    if (found == event.arguments.end() || !event.start_ns) {
      return;
    }
    rows_.count();
    const KinetoValue& value = found->second;
    if (!value.real && !value.number) {
      return;
    }
    events_.counters.push_back({.time_ns = *event.start_ns,
                                .series = rows_.text(event.name),
                                .value = value.real ? *value.real : static_cast<double>(*value.number)});
  }

  std::filesystem::path path_;
  std::int64_t most_value_bytes_;
  ImportedRows rows_;
  TraceEvents& events_;
  std::optional<std::int64_t> process_;
  std::vector<std::size_t> unknown_process_;
  std::vector<std::size_t> threadless_waits_;
  std::vector<std::size_t> step_spans_;
  std::vector<std::pair<RowOf, std::int64_t>> own_ends_;
};

}  // namespace

TraceEvents import_kineto(const std::filesystem::path& path, const ImportLimits& limits) {
  return KinetoReader(path, limits).read();
}

}  // namespace decodelab
