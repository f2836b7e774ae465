// The loop of residual and norm.
#include "engine/kernels/elementwise/fused_norm.h"

#include <cmath>

#include "engine/kernels/wide.h"

namespace decodelab {
namespace {

using simd::kLanes;

template <typename Element, std::int64_t N>
struct NormRows {
  using Sixteen = simd::Wide<N>;

  [[gnu::always_inline]] static Sixteen load(const Element* from, std::int64_t count) {
    return simd::load_wide<N>(from, count);
  }

  [[gnu::always_inline]] static void run(const FusedNorm* norm, std::int64_t first, std::int64_t last) {
    const FusedNorm& n = *norm;
    const std::int64_t d = n.width;
    for (std::int64_t row = first; row < last; ++row) {
      const auto* summed = static_cast<const Element*>(n.residual) + row * d;
      if (n.addend != nullptr) {
        const auto* addend = static_cast<const Element*>(n.addend) + row * d;
        auto* sum = static_cast<Element*>(n.sum) + row * d;
        for (std::int64_t at = 0; at < d; at += kLanes) {
          simd::store_wide(sum + at, load(summed + at, d - at) + load(addend + at, d - at), d - at);
        }
        summed = sum;
      }
      float mean = 0;
      if (n.kind == NormKind::layer) {
        Sixteen total{};
        for (std::int64_t at = 0; at < d; at += kLanes) {
          total += load(summed + at, d - at);
        }
        mean = simd::sum(total) / static_cast<float>(d);
      }
      // Deviations are taken from the mean, since sums of squares would cancel.
      Sixteen squares{};
      for (std::int64_t at = 0; at + kLanes <= d; at += kLanes) {
        const Sixteen off = simd::load_wide<N>(summed + at) - mean;
        squares += off * off;
      }
      float variance = simd::sum(squares);
      if (const std::int64_t rest = d % kLanes; rest != 0) {
        float off[kLanes];
        simd::store_wide(off, load(summed + d - rest, rest) - mean);
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
        Sixteen value = (load(summed + at, d - at) - mean) * scale * (load(weight + at, d - at) + offset);
        if (bias != nullptr) {
          value += load(bias + at, d - at);
        }
        simd::store_wide(normed + at, value, d - at);
      }
    }
  }
};

}  // namespace

void norm_rows(const FusedNorm& norm, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed_wide<NormRows>(norm.dtype, isa, &norm, first, last);
}

}  // namespace decodelab
