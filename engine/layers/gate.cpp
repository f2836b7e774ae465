// Calls the kernel of a gate where the product lies.
#include "engine/layers/gate.h"

#include <algorithm>
#include <stdexcept>

#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/device_element.h"
#include "engine/kernels/elementwise/gate_rows.cuh"
#include "engine/kernels/elementwise/gate_rows.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

/// Elements per task: fewer are not worth another thread.
constexpr std::int64_t kElementsOfATask = 16384;

void gate_on_device([[maybe_unused]] const at::Tensor& up, [[maybe_unused]] Activation activation,
                    [[maybe_unused]] const at::Tensor& result) {
#ifdef DECODELAB_HAS_CUDA
  const std::int64_t width = result.size(-1);
  const DeviceGate gate{.element = device_element(up.scalar_type()),
                        .rows = result.numel() / width,
                        .width = width,
                        .activation = activation,
                        .up = up.const_data_ptr(),
                        .out = result.mutable_data_ptr()};
  on_stream_of(up, [&](CUstream_st* stream) { launch_gate_rows(gate, stream); });
#else
  throw std::invalid_argument("a gate on a GPU needs a build with CUDA");
#endif
}

}  // namespace

at::Tensor gate(const at::Tensor& gate_and_up, Activation activation, Workspace& workspace) {
  const std::int64_t width = gate_and_up.size(-1) / 2;
  at::Tensor result = workspace.allocate_rows(gate_and_up, width);
  if (!gate_and_up.is_cpu()) {
    gate_on_device(gate_and_up, activation, result);
    return result;
  }
  const GatedRows rows{.dtype = element_type(gate_and_up.scalar_type()),
                       .width = width,
                       .activation = activation,
                       .up = gate_and_up.const_data_ptr(),
                       .out = result.mutable_data_ptr()};
  const CpuIsa isa = best_cpu_isa();
  at::parallel_for(0, gate_and_up.numel() / (2 * width), std::max<std::int64_t>(1, kElementsOfATask / width),
                   [&](std::int64_t first, std::int64_t last) { gate_rows(rows, first, last, isa); });
  return result;
}

}  // namespace decodelab
