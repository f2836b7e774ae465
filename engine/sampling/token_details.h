// What is reported about tokens besides their ids: the requests, what answers them, and when more is computed than was
// asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/elementwise/scan_logits.h"

namespace decodelab {

/// Says which details of a token are wanted; each is independent.
struct TokenRequest {
  bool log_prob = false;
  bool rank = false;              ///< 1 + the number of tokens with larger logits.
  std::int64_t top = 0;           ///< So many of the most probable tokens.
  Ties ties = Ties::keep;         ///< Of the most probable tokens: those as probable as the last one.
  std::vector<std::int64_t> ids;  ///< Tokens whose log-probabilities are wanted.

  bool any() const { return log_prob || rank || top > 0 || !ids.empty(); }
  bool operator==(const TokenRequest&) const = default;
};

/// Says which details a caller wants of a row.
struct DetailsRequest {
  TokenRequest generated;  ///< Of each token that is chosen.
  TokenRequest prompt;     ///< Of each token of the prompt but the first.
  /// Those of chosen tokens come from the logits that the choice was made from, after penalty, masks and warpers; else
  /// from the model's own, as those of prompts do.
  bool processed = false;
  /// The texts of tokens are wanted too, of those whose most probable neighbours are told and of these, where the
  /// session knows the bytes of tokens.
  bool text = false;

  bool any() const { return generated.any() || prompt.any(); }
  bool operator==(const DetailsRequest&) const = default;
};

struct TopToken {
  std::int64_t id;
  float log_prob;
  std::string text{};  ///< The bytes that it stands for, where they are wanted.

  bool operator==(const TopToken&) const = default;
};

/// Holds the details of one token; what was not asked for is empty or 0.
struct TokenDetails {
  float log_prob = 0;
  std::int64_t rank = 0;
  std::string text;  ///< The bytes that the token stands for, where they are wanted; of prompts none.
  /// In falling order, equally probable ones by their ids; tokens of probability 0 are left out.
  std::vector<TopToken> top;
  bool tied = false;                    ///< More tokens than were asked for are as probable as the last of them.
  bool truncated = false;               ///< Ties were to be kept, and there are over four times as many as asked for.
  std::vector<float> log_probs_of_ids;  ///< One for each of the ids.
  /// The logits hold a NaN or +infinity, or no token can come: there are no details.
  bool refused = false;
};

/// Holds the details of one row of one step.
struct RowDetails {
  TokenDetails token;
  /// One for each token that was fed since the last choice, but for the first of all.
  std::vector<TokenDetails> prompt;
};

/// Throws std::invalid_argument for a negative number of tokens and for ids outside of the vocabulary.
void check_details(const DetailsRequest& request, std::int64_t vocabulary_size);

/// Decides which details of a row are computed.
class TokenDetailsPolicy {
 public:
  virtual ~TokenDetailsPolicy() = default;

  /// Returns what is computed when `requested` is wanted: a superset of it.
  virtual DetailsRequest effective(const DetailsRequest& requested) const = 0;
};

/// The reference: computes log-probabilities and ranks in every step, and drops what nobody asked for (as the server
/// that the study started from does).
std::unique_ptr<TokenDetailsPolicy> make_details_always();

}  // namespace decodelab
