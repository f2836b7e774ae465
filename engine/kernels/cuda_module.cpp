// Loads the module with libtorch's CUDA part.
#include "engine/kernels/cuda_module.h"

#include <array>
#include <filesystem>
#include <stdexcept>

#ifdef DECODELAB_HAS_CUDA
#include <dlfcn.h>
#endif

namespace decodelab {

#ifdef DECODELAB_HAS_CUDA
namespace {

constexpr const char* kModule = "libdecodelab_cuda.so";
/// Files that a driver makes, on Linux itself and under Windows.
constexpr std::array<const char*, 2> kDriverFiles{"/dev/nvidiactl", "/dev/dxg"};

bool has_driver() {
  for (const char* file : kDriverFiles) {
    if (std::error_code ignored; std::filesystem::exists(file, ignored)) {
      return true;
    }
  }
  return false;
}

/// Null where it cannot be loaded; dlerror() then has the reason. Never unloaded: kernels stay registered.
void* load_module() {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return dlopen((program.parent_path() / kModule).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

void*& module_handle() {
  static void* handle = has_driver() ? load_module() : nullptr;
  return handle;
}

[[noreturn]] void refuse() {
  const char* const reason = dlerror();
  throw std::runtime_error(std::string("libtorch's CUDA part cannot be loaded: ") +
                           (reason == nullptr ? "no reason is known" : reason) + "; keep " + kModule +
                           " beside the program");
}

[[maybe_unused]] const void* const kLoadedAtStart = module_handle();

}  // namespace

void load_cuda_module() {
  void*& handle = module_handle();
  if (handle == nullptr) {
    handle = load_module();
  }
  if (handle == nullptr) {
    refuse();
  }
}

void* cuda_module_function(const std::string& name) {
  load_cuda_module();
  void* const function = dlsym(module_handle(), name.c_str());
  if (function == nullptr) {
    refuse();
  }
  return function;
}

bool cuda_module_loaded() { return module_handle() != nullptr; }
#else
void load_cuda_module() { throw std::runtime_error("this build has no CUDA, and so no module of it"); }

void* cuda_module_function(const std::string&) {
  load_cuda_module();
  return nullptr;
}

bool cuda_module_loaded() { return false; }
#endif

}  // namespace decodelab
