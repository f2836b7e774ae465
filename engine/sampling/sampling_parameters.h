// What a row asks of the choice of its tokens: greedy, or drawn at random from warped logits. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace decodelab {

/// One row's wishes; the defaults are neutral, and greedy. Names, meanings and order (repetition penalty, temperature,
/// top-k, top-p, typical-p, each on what the one before left) are those of Hugging Face's generate().
struct SamplingParameters {
  bool sample = false;     ///< Draw from the softmax of the warped logits; false: the token of the highest logit.
  double temperature = 1;  ///< Divides the logits; above 0.
  std::int64_t top_k = 0;  ///< Keeps the k highest logits and their ties; 0: all.
  double top_p =
      1;  ///< Keeps the likeliest tokens that together reach this probability (Holtzman 2019, arXiv:1904.09751).
  double typical_p = 1;  ///< The same by closeness of surprise to the entropy (Meister 2022, arXiv:2202.00666).
  /// Divides positive logits of tokens that the row holds, prompt included, and multiplies negative ones (Keskar 2019,
  /// arXiv:1909.05858). The one parameter that greedy rows may set too.
  double repetition_penalty = 1;
  std::optional<std::uint64_t> seed;  ///< Of a sampled row's random numbers; none: complete_sampling() draws one.

  bool penalizes() const { return repetition_penalty != 1; }
  /// Nothing but the highest logit counts.
  bool plain_greedy() const { return !sample && !penalizes(); }
  bool has_top_k() const { return top_k != 0; }
  bool has_top_p() const { return top_p != 1; }
  bool has_typical_p() const { return typical_p != 1; }
};

/// Throws std::invalid_argument, naming the flag of `generate`, for a value that has no meaning, and for a warper or a
/// seed of a greedy row.
void check_sampling(const SamplingParameters& parameters);

/// What each of `batch_size` rows asks: `given` is empty (all greedy), one for all rows, or one a row. Sampled rows
/// without a seed get a random one below 2^53, which every reader of JSON keeps. Throws std::invalid_argument for
/// another count, and as check_sampling().
std::vector<SamplingParameters> complete_sampling(std::span<const SamplingParameters> given, std::int64_t batch_size);

}  // namespace decodelab
