// Libtorch's CUDA part and what of ours is linked with it, loaded when the program starts on a machine with a GPU.
#pragma once

#include <string>

namespace decodelab {

/// Loads the module `libdecodelab_cuda.so`, which lies beside the program, and with it libtorch's CUDA kernels, where
/// that was not done yet. Throws std::runtime_error with the loader's reason, and in a build without CUDA.
void load_cuda_module();
/// Returns the address of a function of the module. Throws as load_cuda_module(), and where there is no such function.
void* cuda_module_function(const std::string& name);

/// Returns whether the module is loaded. It is when the program starts, before libtorch has asked for it, where there
/// is a driver of NVIDIA's; elsewhere its load would be a third of each start, for nothing.
bool cuda_module_loaded();

}  // namespace decodelab
