// Sixteen floats in as many registers as an instruction set needs for them. A vector that is wider than a register is
// kept in memory by compilers, and chosen from element by element.
#pragma once

#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/elementwise/gelu.h"
#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/simd.h"

namespace decodelab::simd {

/// Sixteen numbers in registers of N each. They are added in one order whatever N is.
template <std::int64_t N>
struct Wide {
  using Part = typename Lanes<N>::Floats;
  static constexpr std::int64_t kParts = kLanes / N;
  Part parts[kParts];
};

/// Applies a function to each register of one or of two.
template <std::int64_t N, typename Function>
[[gnu::always_inline]] inline Wide<N> each(const Wide<N>& a, Function&& function) {
  Wide<N> result;
#pragma GCC unroll 4
  for (std::int64_t part = 0; part < Wide<N>::kParts; ++part) {
    result.parts[part] = function(a.parts[part]);
  }
  return result;
}
template <std::int64_t N, typename Function>
[[gnu::always_inline]] inline Wide<N> each(const Wide<N>& a, const Wide<N>& b, Function&& function) {
  Wide<N> result;
#pragma GCC unroll 4
  for (std::int64_t part = 0; part < Wide<N>::kParts; ++part) {
    result.parts[part] = function(a.parts[part], b.parts[part]);
  }
  return result;
}

template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> operator+(const Wide<N>& a, const Wide<N>& b) {
  return each(a, b, [](const auto& x, const auto& y) __attribute__((always_inline)) { return x + y; });
}
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> operator-(const Wide<N>& a, const Wide<N>& b) {
  return each(a, b, [](const auto& x, const auto& y) __attribute__((always_inline)) { return x - y; });
}
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> operator*(const Wide<N>& a, const Wide<N>& b) {
  return each(a, b, [](const auto& x, const auto& y) __attribute__((always_inline)) { return x * y; });
}
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> operator+(const Wide<N>& a, float b) {
  return each(a, [b](const auto& x) __attribute__((always_inline)) { return x + b; });
}
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> operator-(const Wide<N>& a, float b) {
  return each(a, [b](const auto& x) __attribute__((always_inline)) { return x - b; });
}
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> operator*(const Wide<N>& a, float b) {
  return each(a, [b](const auto& x) __attribute__((always_inline)) { return x * b; });
}
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> operator/(const Wide<N>& a, float b) {
  return each(a, [b](const auto& x) __attribute__((always_inline)) { return x / b; });
}
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N>& operator+=(Wide<N>& a, const Wide<N>& b) {
  return a = a + b;
}

template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> max(const Wide<N>& a, const Wide<N>& b) {
  return each(a, b, [](const auto& x, const auto& y) __attribute__((always_inline)) { return max(x, y); });
}
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> exp(const Wide<N>& x) {
  return each(x, [](const auto& part) __attribute__((always_inline)) { return exp(part); });
}
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> activate(const Wide<N>& x, Activation activation) {
  return each(x, [activation](const auto& part) __attribute__((always_inline)) { return activate(part, activation); });
}

/// Adds in the order in which sum() of one vector does.
template <std::int64_t N>
[[gnu::always_inline]] inline float sum(const Wide<N>& value) {
  Wide<N> folded = value;
  for (std::int64_t half = Wide<N>::kParts / 2; half > 0; half /= 2) {
    for (std::int64_t part = 0; part < half; ++part) {
      folded.parts[part] += folded.parts[part + half];
    }
  }
  return sum(folded.parts[0]);
}

template <std::int64_t N>
[[gnu::always_inline]] inline float largest(const Wide<N>& value) {
  float most = largest(value.parts[0]);
  for (std::int64_t part = 1; part < Wide<N>::kParts; ++part) {
    const float other = largest(value.parts[part]);
    most = other > most ? other : most;
  }
  return most;
}

/// Load and store sixteen elements.
template <std::int64_t N, typename Element>
[[gnu::always_inline]] inline Wide<N> load_wide(const Element* from) {
  Wide<N> value;
#pragma GCC unroll 4
  for (std::int64_t part = 0; part < Wide<N>::kParts; ++part) {
    value.parts[part] = load<N>(from + part * N);
  }
  return value;
}
template <std::int64_t N, typename Element>
[[gnu::always_inline]] inline void store_wide(Element* to, const Wide<N>& value) {
#pragma GCC unroll 4
  for (std::int64_t part = 0; part < Wide<N>::kParts; ++part) {
    store(to + part * N, value.parts[part]);
  }
}

/// Load and store the first `count` >= 1 elements, at most sixteen; the others load as 0.
template <std::int64_t N, typename Element>
[[gnu::always_inline]] inline Wide<N> load_wide(const Element* from, std::int64_t count) {
  if (count >= kLanes) {
    return load_wide<N>(from);
  }
  Element elements[kLanes] = {};
  std::memcpy(elements, from, static_cast<std::size_t>(count) * sizeof(Element));
  return load_wide<N>(elements);
}
template <std::int64_t N, typename Element>
[[gnu::always_inline]] inline void store_wide(Element* to, const Wide<N>& value, std::int64_t count) {
  if (count >= kLanes) {
    return store_wide(to, value);
  }
  Element elements[kLanes];
  store_wide(elements, value);
  std::memcpy(to, elements, static_cast<std::size_t>(count) * sizeof(Element));
}

/// Returns the first `count` numbers, and `rest` in the places of the others.
template <std::int64_t N>
[[gnu::always_inline]] inline Wide<N> cut(const Wide<N>& value, std::int64_t count, float rest) {
  if (count >= kLanes) {
    return value;
  }
  float lanes[kLanes];
  store_wide(lanes, value);
  for (std::int64_t lane = count; lane < kLanes; ++lane) {
    lanes[lane] = rest;
  }
  return load_wide<N>(lanes);
}

/// Run `Body::run(arguments...)` compiled for the best instruction set that `isa` allows; a `Body` is made for an
/// element type, of which run_typed_wide() takes that of `dtype`, and for the numbers that a register holds.
template <template <typename, std::int64_t> class Body, typename Element, typename... Arguments>
void run_best_wide(CpuIsa isa, Arguments... arguments) {
#if defined(__x86_64__)
  if (isa >= CpuIsa::avx512) {
    return run_avx512<Body<Element, 16>>(arguments...);
  }
  if (isa == CpuIsa::avx2) {
    return run_avx2<Body<Element, 8>>(arguments...);
  }
#endif
  run_portable<Body<Element, 4>>(arguments...);
}
template <template <typename, std::int64_t> class Body, typename... Arguments>
void run_typed_wide(ElementType dtype, CpuIsa isa, Arguments... arguments) {
  switch (dtype) {
    case ElementType::float32: return run_best_wide<Body, float>(isa, arguments...);
    case ElementType::bfloat16: return run_best_wide<Body, Bfloat16>(isa, arguments...);
    case ElementType::float16: return run_best_wide<Body, Half>(isa, arguments...);
  }
}

}  // namespace decodelab::simd
