// The loop of an activation.
#include "engine/kernels/activate.h"

#include "engine/kernels/gelu.h"
#include "engine/kernels/kernel_isa.h"

namespace decodelab {
namespace {

using simd::kLanes;

template <typename Element>
struct Activate {
  [[gnu::always_inline]] static void run(Element* data, std::int64_t count, Activation activation) {
    std::int64_t at = 0;
    for (; at + kLanes <= count; at += kLanes) {
      simd::store(data + at, simd::activate(simd::load(data + at), activation));
    }
    if (at < count) {
      simd::store_some(data + at, simd::activate(simd::load_some(data + at, count - at), activation), count - at);
    }
  }
};

}  // namespace

void activate_in_place(void* data, std::int64_t count, ElementType dtype, Activation activation, SkinnyIsa isa) {
  if (dtype == ElementType::bfloat16) {
    simd::run_best<Activate<simd::Bfloat16>>(isa, static_cast<simd::Bfloat16*>(data), count, activation);
  } else {
    simd::run_best<Activate<float>>(isa, static_cast<float*>(data), count, activation);
  }
}

}  // namespace decodelab
