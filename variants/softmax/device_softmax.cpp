// Shapes and lengths of a call for the kernels, and the rules of every variant of the softmax.
#include "variants/softmax/device_softmax.h"

#include <stdexcept>

#include "engine/kernels/attention/masked_softmax.cuh"
#include "engine/kernels/device_element.h"
#include "engine/layers/step_rows.h"
#include "engine/tensor.h"
#include "variants/attention_limits.h"

namespace decodelab {

void refuse_bias(const SoftmaxCall& call, const std::string& variant) {
  if (call.bias != nullptr) {
    throw std::invalid_argument(variant + " takes no bias; use the reference's softmax here");
  }
}

void softmax_on_device([[maybe_unused]] const SoftmaxCall& call, [[maybe_unused]] SoftmaxWorker worker) {
#ifdef DECODELAB_HAS_CUDA
  const at::Tensor& scores = call.scores;
  const at::Tensor& held = call.rows.held_on_device();
  const DeviceSoftmax softmax{.element = device_element(scores.scalar_type()),
                              .rows = scores.numel() / scores.size(4),
                              .kv_heads = scores.size(1),
                              .tokens = scores.size(2),
                              .shared_heads = scores.size(3),
                              .keys = scores.size(4),
                              .held = held.const_data_ptr<std::int64_t>(),
                              .held_stride = held.stride(0),
                              .unscale = static_cast<float>(call.unscale),
                              .scores = scores.mutable_data_ptr()};
  on_stream_of(scores, [&](CUstream_st* stream) {
    worker == SoftmaxWorker::block ? launch_block_softmax(softmax, stream) : launch_warp_softmax(softmax, stream);
  });
#else
  throw std::invalid_argument("a softmax on a GPU needs a build with CUDA");
#endif
}

std::vector<Expectation> softmax_expected(const CountedSteps& counted, const Parameters&) {
  if (counted.sampled) {
    return {};  // the choice has a softmax of its own
  }
  const bool used = counted.phase == Phase::prefill ? counted.plan.prefill_attention.variant().empty()
                                                    : counted.plan.decode_attention.variant().empty();
  // An operator that was not called has no counter: libtorch's softmax, which the reference calls.
  return used ? std::vector<Expectation>{{"op.aten::softmax", 0}} : std::vector<Expectation>{};
}

std::string softmax_unsupported(const RunsOn& where) { return plain_attention_unsupported(where.config); }

std::string softmax_conflict(const std::string& variant, const EnginePlan& plan) {
  const std::string& prefill = plan.prefill_attention.variant();
  const std::string& decode = plan.decode_attention.variant();
  if (prefill.empty() || decode.empty()) {
    return "";
  }
  return variant + " has no effect beside " + prefill + " and " + decode +
         ", neither of which writes scores out: remove one of the three";
}

}  // namespace decodelab
