// The loop of the masked softmax.
#include "engine/kernels/attention/masked_softmax.h"

#include <limits>

#include "engine/kernels/wide.h"

namespace decodelab {
namespace {

using simd::kLanes;

template <typename Element, std::int64_t N>
struct SoftmaxRows {
  using Sixteen = simd::Wide<N>;
  static constexpr float kLowest = -std::numeric_limits<float>::max();

  /// Loads sixteen scores; those past the row's end are the lowest finite number.
  [[gnu::always_inline]] static Sixteen scores_at(const Element* scores, std::int64_t at, std::int64_t seen,
                                                  float unscale) {
    return simd::cut(simd::load_wide<N>(scores + at, seen - at) * unscale, seen - at, kLowest);
  }

  [[gnu::always_inline]] static void run(const MaskedSoftmax* softmax, std::int64_t first, std::int64_t last) {
    const MaskedSoftmax& s = *softmax;
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t token = row / s.shared_heads % s.tokens;
      const std::int64_t batch = row / s.shared_heads / s.tokens / s.kv_heads;
      const std::int64_t visible = s.past[batch] + token + 1;
      const std::int64_t seen = visible < s.keys ? visible : s.keys;
      const auto* scores = static_cast<const Element*>(s.scores) + row * s.keys;
      auto* weights = static_cast<Element*>(s.weights) + row * s.keys;
      Sixteen most = Sixteen{} + kLowest;
      for (std::int64_t at = 0; at < seen; at += kLanes) {
        most = simd::max(most, scores_at(scores, at, seen, s.unscale));
      }
      const float largest = simd::largest(most);
      Sixteen total{};
      for (std::int64_t at = 0; at < seen; at += kLanes) {
        total += simd::cut(simd::exp(scores_at(scores, at, seen, s.unscale) - largest), seen - at, 0);
      }
      const float scale = 1.0f / simd::sum(total);
      // The exponentials are computed twice, which costs less than storing a row of fp32.
      for (std::int64_t at = 0; at < seen; at += kLanes) {
        const Sixteen weight = simd::exp(scores_at(scores, at, seen, s.unscale) - largest) * scale;
        simd::store_wide(weights + at, weight, seen - at);
      }
      for (std::int64_t at = seen; at < s.keys; ++at) {
        weights[at] = Element{};
      }
    }
  }
};

}  // namespace

void softmax_rows(const MaskedSoftmax& softmax, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed_wide<SoftmaxRows>(softmax.dtype, isa, &softmax, first, last);
}

}  // namespace decodelab
