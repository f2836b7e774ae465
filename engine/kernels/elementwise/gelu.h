// The activations of the model families on sixteen numbers at a time.
#pragma once

#include "engine/kernels/activation.h"
#include "engine/kernels/simd.h"

namespace decodelab::simd {

/// x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2, written as x times a logistic function (Hendrycks and Gimpel
/// 2016, arXiv:1606.08415).
[[gnu::always_inline]] inline Floats gelu_tanh(const Floats& x) {
  constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
  constexpr float kLog2E = 1.44269504088896341f;
  constexpr float kCubic = 0.044715f;
  const Floats inner = x * (-kTwiceSqrt2OverPi * kLog2E - kTwiceSqrt2OverPi * kLog2E * kCubic * x * x);
  return x / (1.0f + exp2(inner));
}

/// x * (1 + erf(x / sqrt(2))) / 2; erf within 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26).
[[gnu::always_inline]] inline Floats gelu_erf(const Floats& x) {
  constexpr float kSqrtHalf = 0.70710678118654752f;
  const Floats z = x * kSqrtHalf;
  const Floats size = max(z, -z);
  const Floats t = 1.0f / (1.0f + 0.3275911f * size);
  Floats p = broadcast(1.061405429f);
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const Floats erf = 1.0f - p * t * exp(-size * size);
  return 0.5f * x * (1.0f + (z < 0.0f ? -erf : erf));
}

/// x / (1 + exp(-x))
[[gnu::always_inline]] inline Floats silu(const Floats& x) { return x / (1.0f + exp(-x)); }

[[gnu::always_inline]] inline Floats activate(const Floats& x, Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh: return gelu_tanh(x);
    case Activation::gelu_erf: return gelu_erf(x);
    case Activation::silu: return silu(x);
    case Activation::relu: break;
  }
  return max(x, broadcast(0.0f));
}

}  // namespace decodelab::simd
