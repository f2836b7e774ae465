// How a model turns queries and keys by their positions: the numbers behind rotary embeddings.
#pragma once

#include <cstdint>

namespace decodelab {

/// The ways of stretching rotary embeddings beyond the length of the training (Hugging Face's `rope_type`).
enum class RotaryScaling : std::uint8_t { none, linear, llama3, yarn };

/// Describes rotary position embeddings (Su et al. 2021, arXiv:2104.09864). Pair i of a head is the elements i and
/// i + dims / 2, which turn by position * theta^(-2 i / dims).
struct RotaryRule {
  double theta = 10000;
  std::int64_t dims = 0;  ///< Elements of a head that turn, from its first on.
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;                    ///< Of all three.
  double low_frequency_factor = 1;      ///< llama3
  double high_frequency_factor = 4;     ///< llama3
  std::int64_t original_positions = 0;  ///< llama3, yarn: the length of the training.
  double attention_factor = 1;  ///< yarn: cosine and sine are multiplied by it (Peng et al. 2023, arXiv:2309.00071).
  double beta_fast = 32;        ///< yarn
  double beta_slow = 1;         ///< yarn

  bool operator==(const RotaryRule&) const = default;
};

}  // namespace decodelab
