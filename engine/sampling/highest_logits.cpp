// Finds them by our own kernel on a CPU, and by libtorch elsewhere.
#include "engine/sampling/highest_logits.h"

#include "engine/kernels/elementwise/arg_max.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/workspace.h"

namespace decodelab {
namespace {

/// Rows of logits that are worth another thread.
constexpr std::int64_t kRowsOfATask = 4;

}  // namespace

at::Tensor highest_logits(const at::Tensor& logits, Workspace& workspace) {
  at::Tensor result = workspace.allocate({logits.size(0), 1}, logits.options().dtype(at::kLong));
  if (!logits.is_cpu()) {
    return at::argmax_out(result, logits, -1, /*keepdim=*/true);
  }
  // libtorch's reduction takes a millisecond for 16 rows of 49152 numbers, as long as reading 40 MB of weights.
  const ElementType dtype = element_type(logits.scalar_type());
  const CpuIsa isa = best_cpu_isa();
  auto* indices = result.mutable_data_ptr<std::int64_t>();
  at::parallel_for(0, logits.size(0), kRowsOfATask, [&](std::int64_t first, std::int64_t last) {
    arg_max_of_rows(logits.const_data_ptr(), logits.size(1), logits.stride(0), dtype, first, last, indices, isa);
  });
  return result;
}

}  // namespace decodelab
