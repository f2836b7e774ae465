// The loop of norm and turn.
#include "engine/kernels/elementwise/rotary_rows.h"

#include <cmath>
#include <cstring>

#include "engine/kernels/wide.h"

namespace decodelab {
namespace {

using simd::kLanes;

template <typename Element, std::int64_t N>
struct TurnRows {
  using Sixteen = simd::Wide<N>;

  [[gnu::always_inline]] static void run(const RotaryRows* rows, std::int64_t first, std::int64_t last) {
    const RotaryRows& r = *rows;
    const std::int64_t k = r.head_dim;
    const std::int64_t half = r.dims / 2;
    // The last lanes may be written past the head.
    alignas(64) float head[kMostRotaryHeadDim + kLanes];
    for (std::int64_t token = first; token < last; ++token) {
      const bool caches = r.cache.keys != nullptr;
      const std::int64_t position = half == 0 && !caches ? 0 : r.positions[token % r.position_count];
      const Element* cosine = static_cast<const Element*>(r.cosine) + position * half;
      const Element* sine = static_cast<const Element*>(r.sine) + position * half;
      auto* const from = static_cast<Element*>(r.rows) + token * r.stride;
      Element* to = from;
      if (caches) {
        const std::int64_t slot = token / r.cache.tokens * r.cache.row_stride + position * r.cache.slot_stride;
        to = static_cast<Element*>(r.cache.keys) + slot;
        std::memcpy(static_cast<Element*>(r.cache.values) + slot, from + r.heads * k,
                    static_cast<std::size_t>(r.heads * k) * sizeof(Element));
      }
      for (std::int64_t index = 0; index < r.heads; ++index) {
        const Element* held = from + index * k;
        Element* stored = to + index * k;
        for (std::int64_t at = 0; at < k; at += kLanes) {
          simd::store_wide(head + at, simd::load_wide<N>(held + at, k - at));
        }
        if (r.norm != nullptr) {
          normalize(head, r);
        }
        for (std::int64_t at = 0; at < half; at += kLanes) {
          const std::int64_t rest = half - at;
          const Sixteen low = simd::load_wide<N>(head + at, rest);
          const Sixteen high = simd::load_wide<N>(head + half + at, rest);
          const Sixteen c = simd::load_wide<N>(cosine + at, rest);
          const Sixteen s = simd::load_wide<N>(sine + at, rest);
          simd::store_wide(stored + at, low * c - high * s, rest);
          simd::store_wide(stored + half + at, high * c + low * s, rest);
        }
        for (std::int64_t at = 2 * half; (caches || r.norm != nullptr) && at < k; at += kLanes) {
          simd::store_wide(stored + at, simd::load_wide<N>(head + at, k - at), k - at);
        }
      }
    }
  }

  [[gnu::always_inline]] static void normalize(float* head, const RotaryRows& r) {
    const std::int64_t k = r.head_dim;
    Sixteen squares{};
    for (std::int64_t at = 0; at < k; at += kLanes) {
      const Sixteen value = simd::load_wide<N>(head + at, k - at);
      squares += value * value;
    }
    const float scale = 1.0f / std::sqrt(simd::sum(squares) / static_cast<float>(k) + r.epsilon);
    const auto* weight = static_cast<const Element*>(r.norm);
    for (std::int64_t at = 0; at < k; at += kLanes) {
      simd::store_wide(
          head + at,
          simd::load_wide<N>(head + at, k - at) * scale * (simd::load_wide<N>(weight + at, k - at) + r.weight_offset),
          k - at);
    }
  }
};

}  // namespace

void turn_rows(const RotaryRows& rows, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed_wide<TurnRows>(rows.dtype, isa, &rows, first, last);
}

}  // namespace decodelab
