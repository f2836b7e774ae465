// A sentence for each way in which CUPTI refuses.
#include "profiles/collect/cupti_reasons.h"

#ifdef DECODELAB_HAS_CUPTI

#include <algorithm>
#include <array>

namespace decodelab {
namespace {

struct Advice {
  CUptiResult result;
  const char* words;
};
constexpr std::array<Advice, 5> kAdvice{
    {{CUPTI_ERROR_UNKNOWN, "there is no NVIDIA driver that it could talk to, or the driver is older than CUDA 13"},
     {CUPTI_ERROR_NOT_INITIALIZED, "there is no NVIDIA driver that it could talk to"},
     {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
      "another tool listens already (nsys, ncu, cuda-gdb, a profiler of PyTorch), and CUPTI has room for one: end it, "
      "or "
      "read the ranges that we give to NVTX"},
     {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
      "this user may not: run as root or with CAP_SYS_ADMIN, or load the driver with "
      "NVreg_RestrictProfilingToAdminUsers=0"},
     {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "the hypervisor does not let guests trace this device"}}};

}  // namespace

std::string cupti_reason(const CuptiFunctions& functions, const char* call, CUptiResult result,
                         const std::string& other) {
  const char* text = nullptr;
  if (functions.result_text(result, &text) != CUPTI_SUCCESS || text == nullptr) {
    text = "unknown result";
  }
  std::string sentence = std::string(call) + " failed with " + std::to_string(result) + " (" + text + ")";
  const auto* const advice = std::ranges::find(kAdvice, result, &Advice::result);
  if (advice != kAdvice.end()) {
    sentence += std::string(": ") + advice->words;
  }
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && !other.empty()) {
    sentence += "; it is " + other;
  }
  return sentence;
}

}  // namespace decodelab

#endif
