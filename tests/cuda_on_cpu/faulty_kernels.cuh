// Small kernels with one fault each, for faults_test.cpp.
#pragma once

#include <span>

namespace decodelab::cuda_on_cpu {

struct FaultyKernel {
  const char* name;  ///< The line that is at fault ends in the comment "FAULT <name>".
  const char* says;  ///< A part of the sentence that was expected.
  void (*launch)(float* memory, int count);
};

/// Each is launched with `count` floats, of which the last 8 are unwritten.
std::span<const FaultyKernel> faulty_kernels();

}  // namespace decodelab::cuda_on_cpu
