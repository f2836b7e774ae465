// What follows the sums of a panel: bias, activation, rounding.
#include "engine/kernels/gelu.h"
#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/skinny_kernels.h"

namespace decodelab::skinny {
namespace {

using simd::Floats;
using simd::kLanes;

template <typename Element>
struct Finish {
  [[gnu::always_inline]] static Floats finished(const SkinnyProduct& product, const Floats& sum, const Floats& bias) {
    const Floats value = sum + bias;
    return product.activation ? simd::activate(value, *product.activation) : value;
  }

  [[gnu::always_inline]] static void run(const SkinnyProduct* of, std::int64_t panel, const float* sums) {
    const SkinnyProduct& product = *of;
    const std::int64_t begin = panel * kPanelOutputs;
    const std::int64_t left = product.weights.outputs() - begin;
    const auto* bias = static_cast<const Element*>(product.bias);
    for (std::int64_t at = 0; at < kPanelOutputs && at < left; at += kLanes) {
      Floats added{};
      if (bias != nullptr) added = simd::load_up_to(bias + begin + at, left - at);
      for (std::int64_t row = 0; row < product.rows; ++row) {
        Element* y = static_cast<Element*>(product.y) + row * product.y_stride + begin + at;
        simd::store_up_to(y, finished(product, simd::load(sums + row * kPanelOutputs + at), added), left - at);
      }
    }
  }
};

}  // namespace

void finish_panel(const SkinnyProduct& product, std::int64_t panel, const float* sums, CpuIsa isa) {
  if (product.weights.dtype() == ElementType::bfloat16) {
    simd::run_best<Finish<simd::Bfloat16>>(isa, &product, panel, sums);
  } else {
    simd::run_best<Finish<float>>(isa, &product, panel, sums);
  }
}

}  // namespace decodelab::skinny
