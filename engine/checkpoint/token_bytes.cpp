// Asks a tokenizer for single tokens.
#include "engine/checkpoint/token_bytes.h"

#include <utility>

namespace decodelab {

TokenBytes::TokenBytes(std::shared_ptr<const ModelText> text, std::string_view flag)
    : text_(std::move(text)), flag_(flag) {
  text_->require_tokenizer(flag_);
}

std::vector<std::string> TokenBytes::of(std::span<const std::int64_t> ids) const {
  return text_->token_bytes(flag_, ids);
}

const std::vector<std::string>& TokenBytes::all() const {
  std::call_once(made_, [this] { all_ = text_->token_bytes(flag_); });
  return all_;
}

}  // namespace decodelab
