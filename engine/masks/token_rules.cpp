// Puts the rules of a row together.
#include "engine/masks/token_rules.h"

#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {

void check_rules(const TokenRules& rules, std::int64_t vocabulary_size) {
  if (rules.min_tokens < 0) {
    throw std::invalid_argument(fmt::format("--min-tokens {}: expected 0 or more", rules.min_tokens));
  }
  for (const std::int64_t id : rules.allowed_ids) {
    if (id < 0 || id >= vocabulary_size) {
      throw std::invalid_argument(fmt::format("--allow-ids has the token id {}, but the vocabulary has the ids 0 to {}",
                                              id, vocabulary_size - 1));
    }
  }
}

RowRules::RowRules(TokenRules rules, std::shared_ptr<TokenMask> mask, std::shared_ptr<const MaskVocabulary> vocabulary)
    : rules_(std::move(rules)), mask_(std::move(mask)), vocabulary_(std::move(vocabulary)) {}

void RowRules::find_allowed(MaskBits& bits) const {
  bool may_end = true;
  if (mask_ == nullptr) {
    bits.allow_all();
  } else if (const TokenMask::State at = state(); at == nullptr) {
    bits.forbid_all();
    may_end = false;
  } else {
    mask_->find_allowed(*at, bits);
    may_end = at->accepting();
  }
  may_end = may_end && !rules_.forbid_eos && std::ssize(taken_) >= rules_.min_tokens;
  for (const std::int64_t id : vocabulary_->eos()) {
    may_end ? bits.allow(id) : bits.forbid(id);
  }
  if (!rules_.allowed_ids.empty()) {
    MaskBits allowed(bits.width());
    for (const std::int64_t id : rules_.allowed_ids) {
      allowed.allow(id);
    }
    bits.keep_only(allowed);
  }
}

void RowRules::take(std::int64_t token_id, std::int64_t position) {
  truncate(position);
  taken_.push_back({position, mask_ == nullptr ? nullptr : mask_->after(state(), token_id)});
}

void RowRules::truncate(std::int64_t position) {
  while (!taken_.empty() && taken_.back().position >= position) {
    taken_.pop_back();
  }
}

}  // namespace decodelab
