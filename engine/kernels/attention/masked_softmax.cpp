// The loop of the masked softmax.
#include "engine/kernels/attention/masked_softmax.h"

#include <limits>

#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/simd.h"

namespace decodelab {
namespace {

using simd::Floats;
using simd::kLanes;

template <typename Element>
struct SoftmaxRows {
  /// Loads sixteen scores; those past the row's end are the lowest finite number.
  [[gnu::always_inline]] static Floats scores_at(const Element* scores, std::int64_t at, std::int64_t seen,
                                                 float unscale) {
    if (at + kLanes <= seen) {
      return simd::load(scores + at) * unscale;
    }
    Floats value = simd::load_some(scores + at, seen - at) * unscale;
    for (std::int64_t lane = seen - at; lane < kLanes; ++lane) {
      value[lane] = -std::numeric_limits<float>::max();
    }
    return value;
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
      Floats most = simd::broadcast(-std::numeric_limits<float>::max());
      for (std::int64_t at = 0; at < seen; at += kLanes) {
        most = simd::max(most, scores_at(scores, at, seen, s.unscale));
      }
      const float largest = simd::largest(most);
      Floats total{};
      for (std::int64_t at = 0; at < seen; at += kLanes) {
        Floats weight = simd::exp(scores_at(scores, at, seen, s.unscale) - largest);
        for (std::int64_t lane = seen - at; lane < kLanes; ++lane) {
          weight[lane] = 0;
        }
        total += weight;
      }
      const float scale = 1.0f / simd::sum(total);
      // The exponentials are computed twice, which costs less than storing a row of fp32.
      for (std::int64_t at = 0; at < seen; at += kLanes) {
        const Floats weight = simd::exp(scores_at(scores, at, seen, s.unscale) - largest) * scale;
        simd::store_up_to(weights + at, weight, seen - at);
      }
      for (std::int64_t at = seen; at < s.keys; ++at) {
        weights[at] = Element{};
      }
    }
  }
};

}  // namespace

void softmax_rows(const MaskedSoftmax& softmax, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed<SoftmaxRows>(softmax.dtype, isa, &softmax, first, last);
}

}  // namespace decodelab
