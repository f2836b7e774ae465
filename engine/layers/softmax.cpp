// The reference of the softmax.
#include "engine/layers/softmax.h"

#include "engine/layers/step_rows.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

class UnfusedSoftmax final : public Softmax {
 public:
  at::Tensor forward(const SoftmaxCall& call) const override {
    at::Tensor scores = call.scores;
    if (call.upcast) {
      scores = scores.to(at::kFloat) * call.unscale;
    }
    if (call.bias != nullptr) {
      scores = scores + *call.bias;
    }
    const at::Tensor visible =
        call.rows.visible(scores.size(4), call.window).unsqueeze(1).unsqueeze(3);  // [B, 1, T, 1, L]
    scores = at::where(visible, scores, scores.scalar_type() == at::kHalf ? kLowestHalf : kLowestBfloat16);
    return at::softmax(scores, -1).to(call.scores.scalar_type());
  }

  std::int64_t workspace_bytes(std::int64_t scores, std::int64_t element_bytes) const override {
    // Masked scores and weights exist at the same time; 16-bit scores are raised to fp32 twice (upcast and its
    // product).
    return scores * (element_bytes == 4 ? 2 * 4 : element_bytes + 3 * 4);
  }
};

}  // namespace

std::unique_ptr<Softmax> make_unfused_softmax() { return std::make_unique<UnfusedSoftmax>(); }

}  // namespace decodelab
