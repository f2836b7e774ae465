// Which tokens typical-p keeps, without sorting a vocabulary.
#pragma once

#include <cstdint>
#include <optional>

namespace decodelab {

/// Returns the entropy of a distribution as the warpers have it: -sum(p * log p) with p = e^(log p), each product in
/// fp32, summed in fp64 in order of the ids, in fp32. Tokens of probability 0 add 0.
float entropy_of(const float* log_probs, const float* exponentials, std::int64_t width);

/// Returns how far the surprise of a token, -log p, may lie from the entropy for typical-p to keep it (Meister 2022,
/// arXiv:2202.00666): the distance of the token with which the tokens so near or nearer reach the mass `typical_p`,
/// both in fp32, as the warpers compute it with a sort.
///
/// It finds the distance with two histograms over the bits of the distances, and sorts only the tokens of one bin, in
/// O(width). Its sums are added up in another order than those of a sort: nothing is returned where that could change
/// the answer, nor for a row with a NaN. That is about one row in a million; sort it then.
std::optional<float> typical_cut(const float* log_probs, const float* probs, std::int64_t width, float entropy,
                                 float typical_p);

/// Returns the distance of a token's surprise from the entropy.
inline float typical_distance(float log_prob, float entropy) {
  const float distance = -log_prob - entropy;
  return distance < 0 ? -distance : distance;
}

}  // namespace decodelab
