// Finds CUPTI's functions in the library that is loaded already, or loads it.
#include "profiles/collect/cupti_functions.h"

#ifdef DECODELAB_HAS_CUPTI

#include <dlfcn.h>

namespace decodelab {
namespace {

template <typename Function>
void look_up(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    missing = name;
  }
}

}  // namespace

CuptiFunctions load_cupti(std::string& reason, const std::string& path) {
  // Two copies of CUPTI in a process would be two subscribers of one driver.
  void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    reason = "CUPTI could not be loaded: " + std::string(dlerror());
    return {};
  }
  CuptiFunctions functions;
  std::string missing;
  look_up(library, "cuptiSubscribe_v2", functions.subscribe, missing);
  look_up(library, "cuptiUnsubscribe", functions.unsubscribe, missing);
  look_up(library, "cuptiEnableCallback", functions.enable_callback, missing);
  look_up(library, "cuptiGetResultString", functions.result_text, missing);
  look_up(library, "cuptiGetCallbackName", functions.callback_name, missing);
  look_up(library, "cuptiGetVersion", functions.version, missing);
  look_up(library, "cuptiGetTimestamp", functions.timestamp, missing);
  look_up(library, "cuptiSetThreadIdType", functions.set_thread_id_type, missing);
  look_up(library, "cuptiActivitySetAttribute", functions.set_attribute, missing);
  look_up(library, "cuptiActivityRegisterTimestampCallback", functions.register_timestamp, missing);
  look_up(library, "cuptiActivityRegisterCallbacks", functions.register_buffers, missing);
  look_up(library, "cuptiActivityEnable", functions.enable, missing);
  look_up(library, "cuptiActivityDisable", functions.disable, missing);
  look_up(library, "cuptiActivityEnableDriverApi", functions.enable_driver_api, missing);
  look_up(library, "cuptiActivityFlushAll", functions.flush_all, missing);
  look_up(library, "cuptiActivityGetNumDroppedRecords", functions.dropped_records, missing);
  look_up(library, "cuptiActivityGetNextRecord", functions.next_record, missing);
  look_up(library, "cuptiActivityPushExternalCorrelationId", functions.push_correlation, missing);
  look_up(library, "cuptiActivityPopExternalCorrelationId", functions.pop_correlation, missing);
  look_up(library, "cuptiGetGraphNodeId", functions.graph_node_id, missing);
  look_up(library, "cuptiGetGraphId", functions.graph_id, missing);
  if (!missing.empty()) {
    reason = "the CUPTI that is loaded has no " + missing + "; this build was made for that of CUDA 13";
    return {};
  }
  return functions;
}

}  // namespace decodelab

#endif
