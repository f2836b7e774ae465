// Calls functions of CUPTI by name, and runs the host's part of its range profiler: it chooses the counters of a chip
// that a metric needs, and computes the metric from them.
#pragma once

#include "profiles/collect/range_counters.h"

#ifdef DECODELAB_HAS_CUPTI

#include <array>

#include <cupti_profiler_host.h>
#include <cupti_result.h>
#include <dlfcn.h>

namespace decodelab {

inline std::array<const char*, 2> counter_metrics() { return {"dram__bytes_read.sum", "dram__bytes_write.sum"}; }

inline void* library(const char* name) {
  void* const opened = dlopen(name, RTLD_NOW);
  if (opened == nullptr) {
    throw CountersRefused(dlerror());
  }
  return opened;
}

/// Returns whether CUPTI says that it will not count here, whatever is asked of it.
inline bool is_refusal(CUptiResult result) {
  return result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES || result == CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED ||
         result == CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED || result == CUPTI_ERROR_HARDWARE_BUSY ||
         result == CUPTI_ERROR_NOT_SUPPORTED;
}

inline void* cupti_function(const char* name) {
  static void* const cupti = library("libcupti.so.13");
  return dlsym(cupti, name);
}

/// Calls the function of CUPTI of that name; `params` must have its size set. Returns CUPTI_ERROR_NOT_SUPPORTED where
/// there is no such function.
template <typename Params>
CUptiResult try_cupti(const char* name, Params& params) {
  const auto function = reinterpret_cast<CUptiResult (*)(Params*)>(cupti_function(name));
  return function == nullptr ? CUPTI_ERROR_NOT_SUPPORTED : function(&params);
}

template <typename Params>
void call_cupti(const char* name, Params& params) {
  const CUptiResult result = try_cupti(name, params);
  if (result == CUPTI_SUCCESS) {
    return;
  }
  const auto text_of =
      reinterpret_cast<CUptiResult (*)(CUptiResult, const char**)>(cupti_function("cuptiGetResultString"));
  const char* text = "?";
  if (text_of != nullptr) {
    text_of(result, &text);
  }
  const std::string sentence = std::string(name) + " failed: " + text + " (" + std::to_string(result) + ")";
  if (is_refusal(result)) {
    throw CountersRefused(sentence);
  }
  throw std::runtime_error(sentence);
}

/// The host's part of the range profiler: says which counters a chip needs for the metrics, and computes the metrics
/// from counts.
class ProfilerHost final {
 public:
  /// `available` is CUPTI's image of the counters that are available; empty means all counters of the chip. CUPTI reads
  /// it again when metrics are added, not only here.
  ProfilerHost(const char* chip, std::vector<std::uint8_t> available) : available_(std::move(available)) {
    CUpti_Profiler_Host_Initialize_Params params{};
    params.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
    params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    params.pChipName = chip;
    params.pCounterAvailabilityImage = available_.empty() ? nullptr : available_.data();
    call_cupti("cuptiProfilerHostInitialize", params);
    host_ = params.pHostObject;
  }
  ~ProfilerHost() {
    CUpti_Profiler_Host_Deinitialize_Params params{};
    params.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
    params.pHostObject = host_;
    try_cupti("cuptiProfilerHostDeinitialize", params);
  }
  ProfilerHost(const ProfilerHost&) = delete;
  ProfilerHost& operator=(const ProfilerHost&) = delete;

  std::vector<std::uint8_t> config() {
    auto names = counter_metrics();
    CUpti_Profiler_Host_ConfigAddMetrics_Params added{};
    added.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
    added.pHostObject = host_;
    added.ppMetricNames = names.data();
    added.numMetrics = names.size();
    call_cupti("cuptiProfilerHostConfigAddMetrics", added);
    CUpti_Profiler_Host_GetConfigImageSize_Params size{};
    size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
    size.pHostObject = host_;
    call_cupti("cuptiProfilerHostGetConfigImageSize", size);
    std::vector<std::uint8_t> image(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params get{};
    get.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
    get.pHostObject = host_;
    get.configImageSize = image.size();
    get.pConfigImage = image.data();
    call_cupti("cuptiProfilerHostGetConfigImage", get);
    return image;
  }

  CountedRange evaluate(const std::vector<std::uint8_t>& counters, std::size_t index) const {
    auto names = counter_metrics();
    std::array<double, 2> values{};
    CUpti_Profiler_Host_EvaluateToGpuValues_Params params{};
    params.structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE;
    params.pHostObject = host_;
    params.pCounterDataImage = counters.data();
    params.counterDataImageSize = counters.size();
    params.rangeIndex = index;
    params.ppMetricNames = names.data();
    params.numMetrics = names.size();
    params.pMetricValues = values.data();
    call_cupti("cuptiProfilerHostEvaluateToGpuValues", params);
    return {.name = "", .read_bytes = values[0], .written_bytes = values[1]};
  }

 private:
  std::vector<std::uint8_t> available_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
};

inline std::int64_t passes_of(std::vector<std::uint8_t>& config) {
  CUpti_Profiler_Host_GetNumOfPasses_Params params{};
  params.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
  params.configImageSize = config.size();
  params.pConfigImage = config.data();
  call_cupti("cuptiProfilerHostGetNumOfPasses", params);
  return static_cast<std::int64_t>(params.numOfPasses);
}

}  // namespace decodelab

#endif
