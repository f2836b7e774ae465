// Masks of patterns that several sessions share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/masks/token_mask.h"

namespace decodelab {

using TokenMaskFactory = std::function<std::shared_ptr<TokenMask>(const TokenMaskOptions&)>;

/// Makes the masks of each pattern once, as long as somebody holds them: what one row has found of an automaton, the
/// others need not find again. For sessions of one engine and one model's tokens; not for several threads at once.
class PatternMasks {
 public:
  PatternMasks(TokenMaskFactory make, std::shared_ptr<const MaskVocabulary> vocabulary)
      : make_(std::move(make)), vocabulary_(std::move(vocabulary)) {}

  /// Returns the masks of a pattern. Throws std::invalid_argument as compile_pattern() does, and where there is no
  /// vocabulary.
  std::shared_ptr<TokenMask> of(const std::string& pattern);

  /// Which tokens end a completion; may be null.
  const std::shared_ptr<const MaskVocabulary>& vocabulary() const { return vocabulary_; }

 private:
  TokenMaskFactory make_;
  std::shared_ptr<const MaskVocabulary> vocabulary_;
  std::map<std::string, std::weak_ptr<TokenMask>> known_;
};

}  // namespace decodelab
