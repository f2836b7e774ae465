// The loop of residual and norm.
#include "engine/kernels/elementwise/fused_norm.h"

#include <cmath>

#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/simd.h"

namespace decodelab {
namespace {

using simd::Floats;
using simd::kLanes;

template <typename Element>
struct NormRows {
  [[gnu::always_inline]] static void run(const FusedNorm* norm, std::int64_t first, std::int64_t last) {
    const FusedNorm& n = *norm;
    const std::int64_t d = n.width;
    for (std::int64_t row = first; row < last; ++row) {
      const auto* summed = static_cast<const Element*>(n.residual) + row * d;
      if (n.addend != nullptr) {
        const auto* addend = static_cast<const Element*>(n.addend) + row * d;
        auto* sum = static_cast<Element*>(n.sum) + row * d;
        for (std::int64_t at = 0; at < d; at += kLanes) {
          simd::store_up_to(sum + at, simd::load_up_to(summed + at, d - at) + simd::load_up_to(addend + at, d - at),
                            d - at);
        }
        summed = sum;
      }
      float mean = 0;
      if (n.kind == NormKind::layer) {
        Floats total{};
        for (std::int64_t at = 0; at < d; at += kLanes) {
          total += simd::load_up_to(summed + at, d - at);
        }
        mean = simd::sum(total) / static_cast<float>(d);
      }
      // Deviations are taken from the mean, since sums of squares would cancel.
      Floats squares{};
      for (std::int64_t at = 0; at + kLanes <= d; at += kLanes) {
        const Floats off = simd::load(summed + at) - mean;
        squares += off * off;
      }
      float variance = simd::sum(squares);
      if (const std::int64_t rest = d % kLanes; rest != 0) {
        const Floats off = simd::load_some(summed + d - rest, rest) - mean;
        for (std::int64_t lane = 0; lane < rest; ++lane) {
          variance += off[lane] * off[lane];
        }
      }
      const float scale = 1.0f / std::sqrt(variance / static_cast<float>(d) + n.epsilon);
      const auto* weight = static_cast<const Element*>(n.weight);
      const auto* bias = static_cast<const Element*>(n.bias);
      auto* normed = static_cast<Element*>(n.normed) + row * d;
      const float offset = n.kind == NormKind::rms_plus_one ? 1.0f : 0.0f;
      for (std::int64_t at = 0; at < d; at += kLanes) {
        Floats value =
            (simd::load_up_to(summed + at, d - at) - mean) * scale * (simd::load_up_to(weight + at, d - at) + offset);
        if (bias != nullptr) {
          value += simd::load_up_to(bias + at, d - at);
        }
        simd::store_up_to(normed + at, value, d - at);
      }
    }
  }
};

}  // namespace

void norm_rows(const FusedNorm& norm, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed<NormRows>(norm.dtype, isa, &norm, first, last);
}

}  // namespace decodelab
