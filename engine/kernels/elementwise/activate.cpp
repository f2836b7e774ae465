// The loop of an activation.
#include "engine/kernels/elementwise/activate.h"

#include "engine/kernels/wide.h"

namespace decodelab {
namespace {

using simd::kLanes;

template <typename Element, std::int64_t N>
struct Activate {
  [[gnu::always_inline]] static void run(void* numbers, std::int64_t count, Activation activation) {
    auto* data = static_cast<Element*>(numbers);
    for (std::int64_t at = 0; at < count; at += kLanes) {
      simd::store_wide(data + at, activate(simd::load_wide<N>(data + at, count - at), activation), count - at);
    }
  }
};

}  // namespace

void activate_in_place(void* data, std::int64_t count, ElementType dtype, Activation activation, CpuIsa isa) {
  simd::run_typed_wide<Activate>(dtype, isa, data, count, activation);
}

}  // namespace decodelab
