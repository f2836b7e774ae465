// The reference of texts: token by token.
#include "engine/sampling/token_text.h"

#include <utility>

#include "profiles/range.h"

namespace decodelab {
namespace {

class DecodedText final : public TokenText {
 public:
  explicit DecodedText(std::shared_ptr<const TokenBytes> bytes) : bytes_(std::move(bytes)) {}

  std::vector<std::vector<std::string>> texts(const std::vector<std::vector<std::int64_t>>& rows) const override {
    std::vector<std::vector<std::string>> all;
    for (const std::vector<std::int64_t>& row : rows) {
      std::vector<std::string>& of_row = all.emplace_back();
      for (const std::int64_t id : row) {
        of_row.push_back(bytes_->of({&id, 1}).front());
        count_amount(Amount::tokenizer_calls, 1);
      }
    }
    return all;
  }

 private:
  std::shared_ptr<const TokenBytes> bytes_;
};

}  // namespace

std::unique_ptr<TokenText> make_decoded_text(std::shared_ptr<const TokenBytes> bytes) {
  return std::make_unique<DecodedText>(std::move(bytes));
}

}  // namespace decodelab
