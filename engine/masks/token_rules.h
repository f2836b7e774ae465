// What may come in a completion, by the wish of who asked for it, and where a row has come to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/masks/mask_bits.h"
#include "engine/masks/token_mask.h"

namespace decodelab {

/// Rules that hold at once; the defaults allow everything.
struct TokenRules {
  /// The completion's text matches this pattern as a whole (compile_pattern() has the syntax): a token comes only where
  /// some matching text goes on with it, and the end only where the text matches. Empty: any text.
  std::string regex;
  bool forbid_eos = false;                ///< No token that ends a completion may come.
  std::int64_t min_tokens = 0;            ///< None of those comes before so many tokens.
  std::vector<std::int64_t> allowed_ids;  ///< No other tokens may come; empty: all may.

  bool any() const { return !regex.empty() || forbid_eos || min_tokens > 0 || !allowed_ids.empty(); }
  bool operator==(const TokenRules&) const = default;
};

/// Throws std::invalid_argument, naming the flag of `generate`, for fewer tokens than 0 and for ids outside of the
/// vocabulary.
void check_rules(const TokenRules& rules, std::int64_t vocabulary_size);

/// Follows the rules of one row. A copy goes on by itself; copies share the masks of their pattern.
class RowRules {
 public:
  /// A row without rules.
  RowRules() = default;
  /// `mask` is that of the rules' pattern, null where there is none. `vocabulary` says which tokens end a completion.
  RowRules(TokenRules rules, std::shared_ptr<TokenMask> mask, std::shared_ptr<const MaskVocabulary> vocabulary);

  bool any() const { return rules_.any(); }
  const TokenMask* mask() const { return mask_.get(); }
  /// Allows in `bits` what may come next, and forbids the rest.
  void find_allowed(MaskBits& bits) const;
  /// Takes note of the token that the row will be fed at `position`, in place of what was noted there and later.
  void take(std::int64_t token_id, std::int64_t position);
  /// Forgets what was noted at `position` and later.
  void truncate(std::int64_t position);

 private:
  struct Taken {
    std::int64_t position;
    TokenMask::State state;  ///< Behind the token; null where the text is dead, or there is no pattern.
  };

  TokenMask::State state() const { return taken_.empty() ? mask_->start() : taken_.back().state; }

  TokenRules rules_;
  std::shared_ptr<TokenMask> mask_;
  std::shared_ptr<const MaskVocabulary> vocabulary_;
  std::vector<Taken> taken_;
};

}  // namespace decodelab
