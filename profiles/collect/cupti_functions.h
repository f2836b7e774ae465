// The functions of CUPTI that are used, as a table: loaded when a trace is taken, replaced in tests.
#pragma once

#ifdef DECODELAB_HAS_CUPTI

#include <string>

#include <cupti.h>

namespace decodelab {

/// Pointers to the functions of CUPTI; null where a function was not found. load_cupti() fills all or none.
struct CuptiFunctions {
  decltype(&::cuptiSubscribe_v2) subscribe = nullptr;
  decltype(&::cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&::cuptiEnableCallback) enable_callback = nullptr;
  decltype(&::cuptiGetResultString) result_text = nullptr;
  decltype(&::cuptiGetCallbackName) callback_name = nullptr;
  decltype(&::cuptiGetVersion) version = nullptr;
  decltype(&::cuptiGetTimestamp) timestamp = nullptr;
  decltype(&::cuptiSetThreadIdType) set_thread_id_type = nullptr;
  decltype(&::cuptiActivitySetAttribute) set_attribute = nullptr;
  decltype(&::cuptiActivityRegisterTimestampCallback) register_timestamp = nullptr;
  decltype(&::cuptiActivityRegisterCallbacks) register_buffers = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityEnableDriverApi) enable_driver_api = nullptr;
  decltype(&::cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&::cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&::cuptiActivityPushExternalCorrelationId) push_correlation = nullptr;
  decltype(&::cuptiActivityPopExternalCorrelationId) pop_correlation = nullptr;
  decltype(&::cuptiGetGraphNodeId) graph_node_id = nullptr;
  decltype(&::cuptiGetGraphId) graph_id = nullptr;
};

/// Returns the functions of the library that libtorch has loaded, or else of `path`. Where there are none, `reason`
/// gets one sentence that says why; otherwise it is left as it is.
CuptiFunctions load_cupti(std::string& reason, const std::string& path = "libcupti.so.13");

}  // namespace decodelab

#endif
