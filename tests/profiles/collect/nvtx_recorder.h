// The other end of NVTX: a tool that writes down what it is told.
#pragma once

#ifdef DECODELAB_HAS_NVTX

// Types only: the implementation is that of the program that is listened to.
#define NVTX_NO_IMPL
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include <nvtx3/nvToolsExt.h>

namespace decodelab::testing {

struct NvtxEvent {
  bool push = false;
  std::string domain;
  std::string text;         ///< Empty of a pop.
  bool registered = false;  ///< Whether the text was a registered string.
  std::uint64_t payload = 0;
};

/// Told of every event of a domain.
inline std::function<void(const NvtxEvent&)> nvtx_told;

/// Strings of handles, which are good until the process ends. Reachable then, so that no leak is reported.
inline std::string* keep(const char* text) {
  static auto* const kept = new std::deque<std::string>();
  return &kept->emplace_back(text);
}
inline nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(keep(name));
}
inline nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(keep(text));
}
inline int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const bool registered = event->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  nvtx_told({.push = true,
             .domain = *reinterpret_cast<std::string*>(domain),
             .text = registered ? *reinterpret_cast<const std::string*>(event->message.registered)
                                : std::string(event->message.ascii),
             .registered = registered,
             .payload = event->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 ? event->payload.ullValue : ~0ULL});
  return 0;
}
inline int NVTX_API pop(nvtxDomainHandle_t domain) {
  nvtx_told({.push = false, .domain = *reinterpret_cast<std::string*>(domain), .text = ""});
  return 0;
}

/// What NVTX calls when it meets its first range.
inline int attach_recorder(NvtxGetExportTableFunc_t get) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) {
    return 0;
  }
  const auto set = [&](int id, auto* function) { *table[id] = reinterpret_cast<NvtxFunctionPointer>(function); };
  set(NVTX_CBID_CORE2_DomainCreateA, &create_domain);
  set(NVTX_CBID_CORE2_DomainRegisterStringA, &register_string);
  set(NVTX_CBID_CORE2_DomainRangePushEx, &push);
  set(NVTX_CBID_CORE2_DomainRangePop, &pop);
  return 1;
}

}  // namespace decodelab::testing

#endif
