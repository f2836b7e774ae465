// The bytes that single tokens stand for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/model_text.h"

namespace decodelab {

/// Gives the bytes of single tokens of a model that has a tokenizer: nothing for special ones and for ids without a
/// token, as those that fill a vocabulary up. May be used by several threads.
class TokenBytes {
 public:
  /// Throws std::invalid_argument where the model has no tokenizer; `flag` names what asked for one.
  TokenBytes(std::shared_ptr<const ModelText> text, std::string_view flag);

  /// Returns the bytes of each id: one call of the tokenizer, which looks each of them up.
  std::vector<std::string> of(std::span<const std::int64_t> ids) const;
  /// Returns the bytes of all ids, made at the first call.
  const std::vector<std::string>& all() const;

 private:
  std::shared_ptr<const ModelText> text_;
  std::string flag_;
  mutable std::once_flag made_;
  mutable std::vector<std::string> all_;
};

}  // namespace decodelab
