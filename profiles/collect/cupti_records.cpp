// Turns each kind of record into a row, one function for each.
#include "profiles/collect/cupti_records.h"

#ifdef DECODELAB_HAS_CUPTI

#include <cstdlib>
#include <memory>

#include <cxxabi.h>

#include "profiles/collect/cupti_calls.h"

namespace decodelab {
namespace {

constexpr unsigned kLayerShift = 32;
/// CUPTI's kinds of overhead are small numbers shifted up by this, except for the driver's compiler.
constexpr unsigned kOverheadShift = 16;

std::int64_t ns(std::uint64_t time) { return static_cast<std::int64_t>(time); }

template <typename Record>
const Record& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

std::string demangled(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? text.get() : mangled;
}

}  // namespace

std::uint64_t correlation_of(std::int32_t layer, Stage stage) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(layer) + 1) << kLayerShift |
         static_cast<std::uint64_t>(stage);
}

void CuptiRecords::add(std::uint8_t* buffer, std::size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_SUCCESS;
  while ((result = cupti_.next_record(buffer, valid_bytes, &record)) == CUPTI_SUCCESS) {
    ++records_;
    add(*record);
  }
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) {
    ++events_.session.dropped_records;
  }
}

void CuptiRecords::add(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return add_kernel(as<CUpti_ActivityKernel10>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY: return add_copy(as<CUpti_ActivityMemcpy6>(record), DeviceOperationKind::copy);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return add_copy(as<CUpti_ActivityMemcpyPtoP4>(record), DeviceOperationKind::copy);
    case CUPTI_ACTIVITY_KIND_MEMSET: return add_copy(as<CUpti_ActivityMemset4>(record), DeviceOperationKind::set);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return add_graph(as<CUpti_ActivityGraphTrace2>(record));
    case CUPTI_ACTIVITY_KIND_RUNTIME: return add_call(as<CUpti_ActivityAPI>(record), false);
    case CUPTI_ACTIVITY_KIND_DRIVER: return add_call(as<CUpti_ActivityAPI>(record), true);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return add_wait(as<CUpti_ActivitySynchronization2>(record));
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return add_overhead(as<CUpti_ActivityOverhead3>(record));
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& correlation = as<CUpti_ActivityExternalCorrelation>(record);
      if (correlation.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1) {
        correlations_[correlation.correlationId] = correlation.externalId;
      }
      return;
    }
    default: ++events_.session.unknown_records;
  }
}

bool CuptiRecords::has_times(std::uint64_t start, std::uint64_t end) {
  if (start == 0 || end == 0) {
    ++events_.session.zero_times;
    return false;
  }
  return true;
}

StringId CuptiRecords::kernel_name(const char* mangled) {
  if (mangled == nullptr) {
    return events_.strings.id("kernel without a name");
  }
  const auto [found, added] = kernel_names_.try_emplace(mangled, StringId{0});
  if (added) {
    found->second = events_.strings.id(demangled(mangled));
  }
  return found->second;
}

template <typename Record>
DeviceOperation CuptiRecords::operation(const Record& record, DeviceOperationKind kind, StringId name) const {
  return {.start_ns = ns(record.start),
          .end_ns = ns(record.end),
          .process = process_,
          .device = static_cast<std::int32_t>(record.deviceId),
          .context = static_cast<std::int32_t>(record.contextId),
          .stream = static_cast<std::int32_t>(record.streamId),
          .correlation = record.correlationId,
          .graph_id = record.graphId,
          .graph_node_id = record.graphNodeId,
          .name = name,
          .kind = kind};
}

void CuptiRecords::add_kernel(const CUpti_ActivityKernel10& record) {
  if (!has_times(record.start, record.end)) {
    return;
  }
  DeviceOperation kernel = operation(record, DeviceOperationKind::kernel, kernel_name(record.name));
  kernel.grid = {record.gridX, record.gridY, record.gridZ};
  kernel.block = {record.blockX, record.blockY, record.blockZ};
  kernel.registers = record.registersPerThread;
  kernel.static_shared_bytes = record.staticSharedMemory;
  kernel.dynamic_shared_bytes = record.dynamicSharedMemory;
  events_.operations.push_back(kernel);
}

template <typename Record>
void CuptiRecords::add_copy(const Record& record, DeviceOperationKind kind) {
  if (!has_times(record.start, record.end)) {
    return;
  }
  DeviceOperation copy =
      operation(record, kind, events_.strings.id(kind == DeviceOperationKind::set ? "memset" : "memcpy"));
  copy.bytes = static_cast<std::int64_t>(record.bytes);
  if constexpr (requires { record.copyKind; }) {
    copy.copy_kind = record.copyKind;
  }
  events_.operations.push_back(copy);
}

void CuptiRecords::add_graph(const CUpti_ActivityGraphTrace2& record) {
  if (!has_times(record.start, record.end)) {
    return;
  }
  events_.session.graph_granularity = true;
  events_.operations.push_back({.start_ns = ns(record.start),
                                .end_ns = ns(record.end),
                                .process = process_,
                                .device = static_cast<std::int32_t>(record.deviceId),
                                .context = static_cast<std::int32_t>(record.contextId),
                                .stream = static_cast<std::int32_t>(record.streamId),
                                .correlation = record.correlationId,
                                .graph_id = record.graphId,
                                .name = events_.strings.id("graph"),
                                .kind = DeviceOperationKind::graph});
}

const CuptiRecords::Call& CuptiRecords::call(bool driver, std::uint32_t callback_id) {
  const auto [found, added] =
      calls_.try_emplace(static_cast<std::uint64_t>(driver) << kLayerShift | callback_id, Call{});
  if (added) {
    const char* text = nullptr;
    const CUptiResult result =
        cupti_.callback_name(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, callback_id, &text);
    const std::string name = result == CUPTI_SUCCESS && text != nullptr
                                 ? plain_call_name(text)
                                 : (driver ? "driver call " : "runtime call ") + std::to_string(callback_id);
    found->second = {.name = events_.strings.id(name), .kind = call_kind(name)};
  }
  return found->second;
}

void CuptiRecords::add_call(const CUpti_ActivityAPI& record, bool driver) {
  if (!has_times(record.start, record.end)) {
    return;
  }
  const Call& called = call(driver, record.cbid);
  if (driver && !launches_one(called.kind) && called.kind != ApiKind::graph_launch) {
    return;
  }
  events_.api_calls.push_back({.start_ns = ns(record.start),
                               .end_ns = ns(record.end),
                               .process = record.processId,
                               .thread = record.threadId,
                               .correlation = record.correlationId,
                               .callback_id = record.cbid,
                               .name = called.name,
                               .kind = called.kind,
                               .driver = driver,
                               .result = static_cast<std::int32_t>(record.returnValue)});
}

void CuptiRecords::add_wait(const CUpti_ActivitySynchronization2& record) {
  if (!has_times(record.start, record.end)) {
    return;
  }
  if (record.type < CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE ||
      record.type > CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE) {
    ++events_.session.unknown_records;
    return;
  }
  events_.waits.push_back({.start_ns = ns(record.start),
                           .end_ns = ns(record.end),
                           .process = process_,
                           .thread = 0,
                           .stream = static_cast<std::int32_t>(record.streamId),
                           .event = record.cudaEventId,
                           .correlation = record.correlationId,
                           .kind = static_cast<WaitKind>(record.type)});
}

void CuptiRecords::add_overhead(const CUpti_ActivityOverhead3& record) {
  if (!has_times(record.start, record.end)) {
    return;
  }
  const auto number = static_cast<std::uint32_t>(record.overheadKind);
  const std::uint32_t kind = number == CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER ? 0 : number >> kOverheadShift;
  if (kind > static_cast<std::uint32_t>(OverheadKind::unified_memory)) {
    ++events_.session.unknown_records;
    return;
  }
  const bool of_thread = record.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD;
  events_.overheads.push_back({.start_ns = ns(record.start),
                               .end_ns = ns(record.end),
                               .thread = of_thread ? static_cast<std::int64_t>(record.objectId.pt.threadId) : 0,
                               .kind = static_cast<OverheadKind>(kind)});
}

void CuptiRecords::finish() {
  std::unordered_map<std::uint32_t, std::int64_t> threads;
  for (const ApiCall& call : events_.api_calls) {
    threads.emplace(call.correlation, call.thread);
  }
  for (Wait& wait : events_.waits) {
    if (const auto found = threads.find(wait.correlation); found != threads.end()) {
      wait.thread = found->second;
    }
  }
  for (DeviceOperation& operation : events_.operations) {
    const auto found = correlations_.find(operation.correlation);
    if (found != correlations_.end() && operation.graph_id == 0) {
      operation.layer = static_cast<std::int32_t>(found->second >> kLayerShift) - 1;
      operation.stage = static_cast<Stage>(static_cast<std::uint32_t>(found->second));
    }
  }
}

}  // namespace decodelab

#endif
