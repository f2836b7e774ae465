// The activations of the model families on a vector of numbers.
#pragma once

#include "engine/kernels/activation.h"
#include "engine/kernels/simd.h"

namespace decodelab::simd {

/// x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2, written as x times a logistic function (Hendrycks and Gimpel
/// 2016, arXiv:1606.08415).
template <typename Vector>
[[gnu::always_inline]] inline Vector gelu_tanh(const Vector& x) {
  constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
  constexpr float kLog2E = 1.44269504088896341f;
  constexpr float kCubic = 0.044715f;
  const Vector inner = x * (-kTwiceSqrt2OverPi * kLog2E - kTwiceSqrt2OverPi * kLog2E * kCubic * x * x);
  return x / (1.0f + exp2(inner));
}

/// x * (1 + erf(x / sqrt(2))) / 2; erf within 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26).
template <typename Vector>
[[gnu::always_inline]] inline Vector gelu_erf(const Vector& x) {
  constexpr float kSqrtHalf = 0.70710678118654752f;
  const Vector z = x * kSqrtHalf;
  const Vector size = max(z, -z);
  const Vector t = 1.0f / (1.0f + 0.3275911f * size);
  Vector p = Vector{} + 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const Vector erf = 1.0f - p * t * exp(-size * size);
  return 0.5f * x * (1.0f + (z < 0.0f ? -erf : erf));
}

/// x / (1 + exp(-x))
template <typename Vector>
[[gnu::always_inline]] inline Vector silu(const Vector& x) {
  return x / (1.0f + exp(-x));
}

template <typename Vector>
[[gnu::always_inline]] inline Vector activate(const Vector& x, Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh: return gelu_tanh(x);
    case Activation::gelu_erf: return gelu_erf(x);
    case Activation::silu: return silu(x);
    case Activation::relu: break;
  }
  return max(x, Vector{});
}

}  // namespace decodelab::simd
