// The loop of an activation.
#include "engine/kernels/activate.h"

#include "engine/kernels/gelu.h"
#include "engine/kernels/kernel_isa.h"

namespace decodelab {
namespace {

using simd::kLanes;

template <typename Element>
struct Activate {
  [[gnu::always_inline]] static void run(void* numbers, std::int64_t count, Activation activation) {
    auto* data = static_cast<Element*>(numbers);
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
  simd::run_typed<Activate>(dtype, isa, data, count, activation);
}

}  // namespace decodelab
