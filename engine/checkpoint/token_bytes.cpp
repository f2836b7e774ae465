// Asks a tokenizer for single tokens.
#include "engine/checkpoint/token_bytes.h"

#include <stdexcept>
#include <utility>

namespace decodelab {

TokenBytes::TokenBytes(std::shared_ptr<const ModelText> text, std::string_view flag) : text_(std::move(text)) {
  text_->require_tokenizer(flag);
}

std::vector<std::string> TokenBytes::of(std::span<const std::int64_t> ids) const {
  std::vector<std::string> bytes;
  bytes.reserve(ids.size());
  for (const std::int64_t id : ids) {
    try {
      bytes.push_back(text_->tokenizer->decode({&id, 1}));
    } catch (const std::invalid_argument&) {
      bytes.emplace_back();  // There is no token with this id.
    }
  }
  return bytes;
}

const std::vector<std::string>& TokenBytes::all() const {
  std::call_once(made_, [this] { all_ = text_->token_bytes("a table of tokens"); });
  return all_;
}

}  // namespace decodelab
