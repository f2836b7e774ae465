// How the tokens of a row are chosen: greedy, or drawn at random from warped logits. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace decodelab {

/// Holds one row's sampling parameters; the defaults are neutral and greedy. Names, meanings and order (repetition
/// penalty, temperature, top-k, top-p, typical-p, each applied to what the one before left) are those of Hugging Face's
/// generate().
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
  std::optional<std::uint64_t>
      seed;  ///< Seeds a sampled row's random numbers; where empty, complete_sampling() draws one.

  bool penalizes() const { return repetition_penalty != 1; }
  /// Returns whether the highest logit alone decides.
  bool plain_greedy() const { return !sample && !penalizes(); }
  bool has_top_k() const { return top_k != 0; }
  bool has_top_p() const { return top_p != 1; }
  bool has_typical_p() const { return typical_p != 1; }
};

/// Throws std::invalid_argument, naming the flag of `generate`, for a value that has no meaning, and for a warper or a
/// seed of a greedy row.
void check_sampling(const SamplingParameters& parameters);

/// Returns the parameters of each of `batch_size` rows: `given` is empty (all greedy), one for all rows, or one per
/// row. Sampled rows without a seed get a random one below 2^53, which every reader of JSON keeps exact. Throws
/// std::invalid_argument for another count, and what check_sampling() throws.
std::vector<SamplingParameters> complete_sampling(std::span<const SamplingParameters> given, std::int64_t batch_size);

}  // namespace decodelab
