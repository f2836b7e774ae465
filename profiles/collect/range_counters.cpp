// Drives CUPTI's range profiler: one pass that counts the bytes read from and written to the device's memory.
#include "profiles/collect/range_counters.h"

#include "profiles/collect/profiler_host.h"

#ifdef DECODELAB_HAS_CUPTI

#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

namespace decodelab {
namespace {

/// Calls the function of the driver with that name.
template <typename... Arguments>
CUresult call_driver(const char* name, Arguments... arguments) {
  static void* const driver = library("libcuda.so.1");
  const auto function = reinterpret_cast<CUresult (*)(Arguments...)>(dlsym(driver, name));
  return function == nullptr ? CUDA_ERROR_NOT_FOUND : function(arguments...);
}

CUcontext current_context() {
  CUcontext context = nullptr;
  if (call_driver("cuCtxGetCurrent", &context) != CUDA_SUCCESS || context == nullptr) {
    throw std::runtime_error("no context of CUDA is current on this thread: run something on the device first");
  }
  return context;
}

void initialize() {
  CUpti_Profiler_Initialize_Params params{};
  params.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  call_cupti("cuptiProfilerInitialize", params);
}

std::vector<std::uint8_t> available_counters(CUcontext context) {
  CUpti_Profiler_GetCounterAvailability_Params params{};
  params.structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE;
  params.ctx = context;
  call_cupti("cuptiProfilerGetCounterAvailability", params);
  std::vector<std::uint8_t> image(params.counterAvailabilityImageSize);
  params.pCounterAvailabilityImage = image.data();
  call_cupti("cuptiProfilerGetCounterAvailability", params);
  return image;
}

std::string chip_of_device_0() {
  CUpti_Device_GetChipName_Params params{};
  params.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  call_cupti("cuptiDeviceGetChipName", params);
  return params.pChipName;
}

}  // namespace

struct RangeCounters::Impl {
  std::unique_ptr<ProfilerHost> host;
  std::vector<std::uint8_t> config;
  std::vector<std::uint8_t> counters;
  CUpti_RangeProfiler_Object* profiler = nullptr;

  ~Impl() {
    if (profiler == nullptr) {
      return;
    }
    CUpti_RangeProfiler_Disable_Params params{};
    params.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = profiler;
    try_cupti("cuptiRangeProfilerDisable", params);
  }
};

std::int64_t passes_to_count(const std::string& chip) {
  ProfilerHost host(chip.c_str(), {});
  std::vector<std::uint8_t> config = host.config();
  return passes_of(config);
}

RangeCounters::RangeCounters(std::int64_t most_ranges) : impl_(std::make_unique<Impl>()) {
  const CUcontext context = current_context();
  initialize();
  const std::string chip = chip_of_device_0();
  impl_->host = std::make_unique<ProfilerHost>(chip.c_str(), available_counters(context));
  impl_->config = impl_->host->config();
  if (passes_of(impl_->config) != 1) {
    throw std::runtime_error(chip + " cannot count reads and writes in one pass, and no pass is repeated here");
  }
  CUpti_RangeProfiler_Enable_Params enable{};
  enable.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE;
  enable.ctx = context;
  call_cupti("cuptiRangeProfilerEnable", enable);
  impl_->profiler = enable.pRangeProfilerObject;

  auto names = counter_metrics();
  CUpti_RangeProfiler_GetCounterDataSize_Params size{};
  size.structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE;
  size.pRangeProfilerObject = impl_->profiler;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxNumOfRanges = static_cast<std::size_t>(most_ranges);
  size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(most_ranges);
  call_cupti("cuptiRangeProfilerGetCounterDataSize", size);
  impl_->counters.resize(size.counterDataSize);
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params image{};
  image.structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE;
  image.pRangeProfilerObject = impl_->profiler;
  image.counterDataSize = impl_->counters.size();
  image.pCounterData = impl_->counters.data();
  call_cupti("cuptiRangeProfilerCounterDataImageInitialize", image);

  CUpti_RangeProfiler_SetConfig_Params config{};
  config.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE;
  config.pRangeProfilerObject = impl_->profiler;
  config.configSize = impl_->config.size();
  config.pConfig = impl_->config.data();
  config.counterDataImageSize = impl_->counters.size();
  config.pCounterDataImage = impl_->counters.data();
  config.range = CUPTI_UserRange;
  config.replayMode = CUPTI_UserReplay;
  config.maxRangesPerPass = static_cast<std::size_t>(most_ranges);
  config.numNestingLevels = 1;
  config.minNestingLevel = 1;
  config.passIndex = 0;
  config.targetNestingLevel = 1;
  call_cupti("cuptiRangeProfilerSetConfig", config);
}

RangeCounters::~RangeCounters() = default;

void RangeCounters::start() {
  CUpti_RangeProfiler_Start_Params params{};
  params.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = impl_->profiler;
  call_cupti("cuptiRangeProfilerStart", params);
}

void RangeCounters::push(const std::string& name) {
  CUpti_RangeProfiler_PushRange_Params params{};
  params.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = impl_->profiler;
  params.pRangeName = name.c_str();
  call_cupti("cuptiRangeProfilerPushRange", params);
}

void RangeCounters::pop() {
  // A range ends when the host says so: what it launched must be done by then.
  if (const CUresult result = call_driver("cuCtxSynchronize"); result != CUDA_SUCCESS) {
    throw std::runtime_error("cuCtxSynchronize failed: " + std::to_string(result));
  }
  CUpti_RangeProfiler_PopRange_Params params{};
  params.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = impl_->profiler;
  call_cupti("cuptiRangeProfilerPopRange", params);
}

std::vector<CountedRange> RangeCounters::stop() {
  CUpti_RangeProfiler_Stop_Params stopped{};
  stopped.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
  stopped.pRangeProfilerObject = impl_->profiler;
  call_cupti("cuptiRangeProfilerStop", stopped);
  CUpti_RangeProfiler_DecodeData_Params decoded{};
  decoded.structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE;
  decoded.pRangeProfilerObject = impl_->profiler;
  call_cupti("cuptiRangeProfilerDecodeData", decoded);
  if (stopped.isAllPassSubmitted == 0 || decoded.numOfRangeDropped > 0) {
    throw std::runtime_error("the counters of " + std::to_string(decoded.numOfRangeDropped) +
                             " ranges are missing: make room for more");
  }
  CUpti_RangeProfiler_GetCounterDataInfo_Params info{};
  info.structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE;
  info.pCounterDataImage = impl_->counters.data();
  info.counterDataImageSize = impl_->counters.size();
  call_cupti("cuptiRangeProfilerGetCounterDataInfo", info);
  std::vector<CountedRange> ranges;
  for (std::size_t index = 0; index < info.numTotalRanges; ++index) {
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params name{};
    name.structSize = CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE;
    name.pCounterDataImage = impl_->counters.data();
    name.counterDataImageSize = impl_->counters.size();
    name.rangeIndex = index;
    name.rangeDelimiter = "/";
    call_cupti("cuptiRangeProfilerCounterDataGetRangeInfo", name);
    ranges.push_back(impl_->host->evaluate(impl_->counters, index));
    ranges.back().name = name.rangeName;
  }
  return ranges;
}

#else

namespace decodelab {

struct RangeCounters::Impl {};

std::int64_t passes_to_count(const std::string&) {
  throw CountersRefused("this build was made without the headers of CUPTI");
}
RangeCounters::RangeCounters(std::int64_t) {
  throw CountersRefused("this build was made without the headers of CUPTI");
}
RangeCounters::~RangeCounters() = default;
void RangeCounters::start() {}
void RangeCounters::push(const std::string&) {}
void RangeCounters::pop() {}
std::vector<CountedRange> RangeCounters::stop() { return {}; }

#endif

void RangeCounters::enter(Stage stage) {
  if (depth_++ == 0) {
    push(std::to_string(entered_++) + " " + kStageNames[static_cast<std::size_t>(stage)]);
  }
}

void RangeCounters::leave() {
  if (--depth_ == 0) {
    pop();
  }
}

}  // namespace decodelab
