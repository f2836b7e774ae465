// How the texts of a step's tokens are found: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/token_bytes.h"

namespace decodelab {

/// Finds the texts of the tokens that a step chose, and of their most probable neighbours.
class TokenText {
 public:
  virtual ~TokenText() = default;

  /// Returns the text of each token of each row.
  virtual std::vector<std::vector<std::string>> texts(const std::vector<std::vector<std::int64_t>>& rows) const = 0;
};

/// The reference: a call of the tokenizer for each token (text-generation-inference #604, the first version).
std::unique_ptr<TokenText> make_decoded_text(std::shared_ptr<const TokenBytes> bytes);

}  // namespace decodelab
