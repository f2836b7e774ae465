// Finds the masks of a pattern that somebody holds.
#include "engine/masks/pattern_masks.h"

#include <stdexcept>

namespace decodelab {

std::shared_ptr<TokenMask> PatternMasks::of(const std::string& pattern) {
  if (vocabulary_ == nullptr) {
    throw std::invalid_argument("a pattern needs the bytes of the tokens, and the session was given no vocabulary");
  }
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = known_.find(pattern); found != known_.end()) {
    return found->second.lock();
  }
  std::shared_ptr<TokenMask> made = make_({.pattern = pattern, .vocabulary = vocabulary_});
  known_.emplace(pattern, made);
  return made;
}

}  // namespace decodelab
