// A library for NVTX_INJECTION64_PATH: writes each range as a line into the file that NVTX_RECORDER_FILE names.
#include <cstdlib>
#include <fstream>

#include "tests/profiles/collect/nvtx_recorder.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  using decodelab::testing::NvtxEvent;
  const char* const path = std::getenv("NVTX_RECORDER_FILE");
  if (path == nullptr) {
    return 0;
  }
  static std::ofstream file(path);
  decodelab::testing::nvtx_told = [](const NvtxEvent& event) {
    file << (event.push ? "push" : "pop") << '\t' << event.domain << '\t' << event.text << '\t'
         << (event.registered ? "registered" : "") << '\t' << (event.push ? event.payload : 0) << std::endl;
  };
  return decodelab::testing::attach_recorder(get);
}
