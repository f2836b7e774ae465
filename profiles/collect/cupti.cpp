// Subscribes to CUPTI, notes where nodes of graphs come from, and collects records.
#include "profiles/collect/cupti.h"

#include "profiles/collect/cupti_functions.h"

#ifdef DECODELAB_HAS_CUPTI

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <unistd.h>

#include "profiles/collect/cupti_buffers.h"
#include "profiles/collect/cupti_calls.h"
#include "profiles/collect/cupti_places.h"
#include "profiles/collect/cupti_reasons.h"
#include "profiles/collect/cupti_records.h"
#include "profiles/collect/thread_spans.h"

namespace decodelab {
namespace {

/// Buffers of 128 MiB in all, for 600,000 kernels. What is not used is never touched.
constexpr std::size_t kBuffers = 16;
/// Each takes 3 MiB of device memory; CUPTI's own limit of 250 takes memory that the cell may need.
constexpr std::size_t kDeviceBuffers = 20;
constexpr int kBracketReads = 5;

constexpr std::array kKernelKinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                  CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
/// GRAPH_TRACE is never among them: its records replace those of the kernels in graphs. Calls of the driver are, since
/// cuBLAS launches past the runtime.
constexpr std::array kCauseKinds{CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
                                 CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                 CUPTI_ACTIVITY_KIND_OVERHEAD};
constexpr std::array kNodeCallbacks{CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};

std::uint64_t CUPTIAPI clock_of_traces() { return static_cast<std::uint64_t>(trace_clock_ns()); }

/// Returns true in the first call of a process: each further registration garbles a record (pytorch/pytorch#192021).
bool first_registration(const CuptiFunctions& functions) {
  static std::mutex mutex;
  static std::set<void*> registered;  // Keyed by function, so that a test's CUPTI counts as another one.
  const std::scoped_lock lock(mutex);
  return registered.insert(reinterpret_cast<void*>(functions.register_timestamp)).second;
}

/// Counts calls inside of calls: a driver's call inside of a runtime's launches the same thing.
thread_local int call_depth = 0;
/// The counter that the open call of this thread was added to; null where it is no launch.
thread_local std::atomic<std::int64_t>* counted_launch = nullptr;

}  // namespace

struct CuptiSession::Impl {
  explicit Impl(const CuptiFunctions& functions) : cupti(functions), places(cupti), buffers(kBuffers) {}

  /// Returns whether a call succeeded, and keeps the reason of the first one that failed.
  bool try_call(const char* what, CUptiResult result) {
    if (result != CUPTI_SUCCESS && reason.empty()) {
      reason = cupti_reason(cupti, what, result, old_subscriber.data());
    }
    return result == CUPTI_SUCCESS;
  }

  bool subscribe();
  void unsubscribe();
  void look_up_calls();
  void count_calls(bool on);
  void on_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  ClockBracket bracket() const;

  CuptiFunctions cupti;
  CuptiPlaces places;
  CuptiBuffers buffers;
  std::array<char, 128> old_subscriber{};
  std::string reason;
  CUpti_SubscriberHandle subscriber = nullptr;
  std::vector<std::pair<CUpti_CallbackId, ApiKind>> runtime_calls;  ///< Calls that launch, sorted by id.
  std::vector<std::pair<CUpti_CallbackId, ApiKind>> driver_calls;
  std::vector<CUpti_CallbackId> driver_calls_of_no_use;  ///< Those that launch nothing.
  std::atomic<bool> counting{false};
  std::atomic<std::int64_t> launches{0};
  std::atomic<std::int64_t> graph_launches{0};
  std::atomic<std::int64_t> lost_records{0};
};

namespace {

/// The open session. It is a global since CUPTI's callbacks for buffers take no argument of ours.
std::atomic<CuptiSession::Impl*> session{nullptr};

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  CuptiSession::Impl* const impl = session.load();
  *most_records = 0;
  *buffer = impl != nullptr ? impl->buffers.take() : nullptr;
  *size = impl != nullptr ? impl->buffers.buffer_bytes() : 0;
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  CuptiSession::Impl* const impl = session.load();
  if (impl == nullptr || buffer == nullptr) {
    return;
  }
  if (impl->buffers.loses(buffer)) {
    CUpti_Activity* record = nullptr;
    while (impl->cupti.next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
      ++impl->lost_records;
    }
  }
  impl->buffers.give(buffer, valid_bytes);
}

void CUPTIAPI called_back(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  static_cast<CuptiSession::Impl*>(user)->on_callback(domain, id, data);
}

class CuptiCollector final : public Collector {
 public:
  explicit CuptiCollector(CuptiSession::Impl& impl) : impl_(impl) {}
  ~CuptiCollector() override { stop(); }

  std::string name() const override { return "cupti"; }
  Capability probe() override { return {.available = impl_.reason.empty(), .reason = impl_.reason}; }
  void start(const TraceConfig& config) override;
  void stop() override;
  void drain(TraceEvents& events) override;

 private:
  bool enable(CUpti_ActivityKind kind);
  void disable_all();

  CuptiSession::Impl& impl_;
  TraceConfig config_;
  std::vector<CUpti_ActivityKind> enabled_;
  std::vector<ClockBracket> clocks_;
  std::size_t dropped_ = 0;
  bool on_ = false;
  bool ran_ = false;
};

bool CuptiCollector::enable(CUpti_ActivityKind kind) {
  if (!impl_.try_call("cuptiActivityEnable", impl_.cupti.enable(kind))) {
    return false;
  }
  enabled_.push_back(kind);
  return true;
}

void CuptiCollector::disable_all() {
  for (const CUpti_ActivityKind kind : enabled_) {
    impl_.cupti.disable(kind);
  }
  enabled_.clear();
}

void CuptiCollector::start(const TraceConfig& config) {
  config_ = config;
  ran_ = false;
  if (!impl_.reason.empty()) {
    return;
  }
  bool all = std::ranges::all_of(kKernelKinds, [this](CUpti_ActivityKind kind) { return enable(kind); });
  if (config.tier >= TraceTier::causes) {
    all = all && std::ranges::all_of(kCauseKinds, [this](CUpti_ActivityKind kind) { return enable(kind); });
    // Of the driver's calls only launches are kept. Enabling just those, without their kind, records none of them
    // (CUPTI 13.0.85, seen on an H100).
    for (const CUpti_CallbackId id : impl_.driver_calls_of_no_use) {
      impl_.cupti.enable_driver_api(id, 0);
    }
  }
  if (!all) {
    disable_all();
    return;
  }
  impl_.places.push_correlations(config.tier >= TraceTier::causes);
  impl_.launches = 0;
  impl_.graph_launches = 0;
  impl_.count_calls(true);
  clocks_.push_back(impl_.bracket());
  on_ = true;
  ran_ = true;
}

void CuptiCollector::stop() {
  if (!on_) {
    return;
  }
  on_ = false;
  clocks_.push_back(impl_.bracket());
  impl_.places.push_correlations(false);
  impl_.count_calls(false);
  disable_all();
  // No lock is held during the flush: CUPTI hands the buffers over from a thread of its own.
  impl_.try_call("cuptiActivityFlushAll", impl_.cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  impl_.cupti.dropped_records(nullptr, 0, &dropped_);
}

void CuptiCollector::drain(TraceEvents& events) {
  const std::vector<CuptiBuffers::Filled> filled = impl_.buffers.filled();
  CuptiRecords records(impl_.cupti, events, getpid());
  for (const CuptiBuffers::Filled& buffer : filled) {
    records.add(buffer.buffer, buffer.valid_bytes);
  }
  records.finish();
  TraceSession& session_of = events.session;
  session_of.dropped_records += static_cast<std::int64_t>(dropped_) + impl_.lost_records.exchange(0);
  impl_.buffers.reuse();
  dropped_ = 0;
  session_of.clocks.insert(session_of.clocks.end(), clocks_.begin(), clocks_.end());
  clocks_.clear();
  std::uint32_t version = 0;
  if (impl_.cupti.version(&version) == CUPTI_SUCCESS) {
    session_of.versions.emplace_back("cupti", std::to_string(version));
  }
  session_of.versions.emplace_back("cupti_headers", std::to_string(CUPTI_API_VERSION));
  session_of.collectors.push_back({.name = name(), .on = ran_, .reason = impl_.reason});
  const std::vector<GraphNode> nodes = impl_.places.nodes();
  events.nodes.insert(events.nodes.end(), nodes.begin(), nodes.end());
  session_of.collectors.push_back({.name = "graph-nodes", .on = ran_, .reason = impl_.reason});
}

}  // namespace

bool CuptiSession::Impl::subscribe() {
  CUpti_SubscriberParams parameters{};
  parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  parameters.subscriberName = "decodelab";
  parameters.oldSubscriberName = old_subscriber.data();
  parameters.oldSubscriberSize = old_subscriber.size();
  if (!try_call("cuptiSubscribe", cupti.subscribe(&subscriber, &called_back, this, &parameters))) {
    subscriber = nullptr;
    return false;
  }
  session = this;
  std::size_t limit = kDeviceBuffers;
  std::size_t size = sizeof limit;
  // CUPTI reports the thread ids of the kernel, which spans use too.
  bool all = try_call("cuptiSetThreadIdType", cupti.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)) &&
             try_call("cuptiActivitySetAttribute",
                      cupti.set_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &size, &limit));
  if (all && first_registration(cupti)) {
    all = try_call("cuptiActivityRegisterTimestampCallback", cupti.register_timestamp(&clock_of_traces));
  }
  all = all && try_call("cuptiActivityRegisterCallbacks", cupti.register_buffers(&buffer_requested, &buffer_completed));
  for (const auto id : kNodeCallbacks) {
    all = all && try_call("cuptiEnableCallback", cupti.enable_callback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                                                       static_cast<CUpti_CallbackId>(id)));
  }
  if (all) {
    look_up_calls();
  } else {
    unsubscribe();
  }
  return all;
}

void CuptiSession::Impl::unsubscribe() {
  if (subscriber != nullptr) {
    cupti.unsubscribe(subscriber);
    subscriber = nullptr;
    session = nullptr;
  }
}

void CuptiSession::Impl::look_up_calls() {
  const auto collect = [this](CUpti_CallbackDomain domain, std::uint32_t count, auto& calls, auto& others) {
    for (std::uint32_t id = 1; id < count; ++id) {
      const char* text = nullptr;
      if (cupti.callback_name(domain, id, &text) != CUPTI_SUCCESS || text == nullptr) {
        continue;
      }
      const ApiKind kind = call_kind(plain_call_name(text));
      if (launches_one(kind) || kind == ApiKind::graph_launch) {
        calls.emplace_back(id, kind);
      } else {
        others.push_back(id);
      }
    }
  };
  std::vector<CUpti_CallbackId> kept;
  collect(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, runtime_calls, kept);
  collect(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, driver_calls, driver_calls_of_no_use);
}

void CuptiSession::Impl::count_calls(bool on) {
  counting = on;
  for (const auto& [domain, calls] :
       {std::pair(CUPTI_CB_DOMAIN_RUNTIME_API, &runtime_calls), std::pair(CUPTI_CB_DOMAIN_DRIVER_API, &driver_calls)}) {
    for (const auto& [id, kind] : *calls) {
      cupti.enable_callback(on ? 1 : 0, subscriber, domain, id);
    }
  }
}

void CuptiSession::Impl::on_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    const auto& graph =
        *static_cast<const CUpti_GraphData*>(static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor);
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
      places.created(graph);
      if (counted_launch != nullptr) {
        --*std::exchange(counted_launch, nullptr);  // The stream is being captured: the call has launched nothing.
      }
    } else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
      places.cloned(graph);
    }
    return;
  }
  if (static_cast<const CUpti_CallbackData*>(data)->callbackSite == CUPTI_API_EXIT) {
    call_depth = std::max(0, call_depth - 1);
    counted_launch = call_depth == 0 ? nullptr : counted_launch;
    return;
  }
  if (call_depth++ > 0) {
    return;
  }
  const auto& calls = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime_calls : driver_calls;
  const auto found = std::ranges::lower_bound(calls, id, {}, &std::pair<CUpti_CallbackId, ApiKind>::first);
  if (found != calls.end() && found->first == id) {
    counted_launch = found->second == ApiKind::graph_launch ? &graph_launches : &launches;
    ++*counted_launch;
  }
}

ClockBracket CuptiSession::Impl::bracket() const {
  ClockBracket best{.before_ns = 0, .device_ns = 0, .after_ns = 0};
  for (int read = 0; read < kBracketReads; ++read) {
    std::uint64_t device = 0;
    const std::int64_t before = trace_clock_ns();
    if (cupti.timestamp(&device) != CUPTI_SUCCESS) {
      continue;
    }
    const std::int64_t after = trace_clock_ns();
    if (best.after_ns == 0 || after - before < best.after_ns - best.before_ns) {
      best = {.before_ns = before, .device_ns = static_cast<std::int64_t>(device), .after_ns = after};
    }
  }
  return best;
}

CuptiSession::CuptiSession(const CuptiFunctions& functions) : impl_(std::make_unique<Impl>(functions)) {
  if (impl_->subscribe()) {
    impl_->places.attach();
  }
}

CuptiSession::~CuptiSession() {
  impl_->places.detach();
  impl_->unsubscribe();
}

const std::string& CuptiSession::why_not() const { return impl_->reason; }
std::unique_ptr<Collector> CuptiSession::collector() { return std::make_unique<CuptiCollector>(*impl_); }

std::optional<LaunchCounts> CuptiSession::launches() const {
  if (!impl_->counting) {
    return std::nullopt;
  }
  return LaunchCounts{.launches = impl_->launches, .graph_launches = impl_->graph_launches};
}

std::unique_ptr<CuptiSession> open_cupti(std::string& reason) {
  const CuptiFunctions functions = load_cupti(reason);
  if (!reason.empty()) {
    return nullptr;
  }
  auto opened = std::make_unique<CuptiSession>(functions);
  reason = opened->why_not();
  return reason.empty() ? std::move(opened) : nullptr;
}

}  // namespace decodelab

#else

namespace decodelab {

struct CuptiSession::Impl {};
CuptiSession::~CuptiSession() = default;

std::unique_ptr<CuptiSession> open_cupti(std::string& reason) {
  reason = "this build was made without the headers of CUPTI";
  return nullptr;
}

std::unique_ptr<Collector> CuptiSession::collector() {
  return std::make_unique<NullCollector>("cupti", "this build was made without the headers of CUPTI");
}
std::optional<LaunchCounts> CuptiSession::launches() const { return std::nullopt; }

}  // namespace decodelab

#endif
