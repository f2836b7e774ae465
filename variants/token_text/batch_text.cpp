// Asks the tokenizer once for all tokens of a step.
#include <iterator>
#include <utility>

#include "engine/sampling/token_text.h"
#include "profiles/range.h"
#include "variants/registry.h"
#include "variants/token_text/token_text_variant.h"

namespace decodelab {
namespace {

class BatchText final : public TokenText {
 public:
  explicit BatchText(std::shared_ptr<const TokenBytes> bytes) : bytes_(std::move(bytes)) {}

  std::vector<std::vector<std::string>> texts(const std::vector<std::vector<std::int64_t>>& rows) const override {
    std::vector<std::int64_t> ids;
    for (const std::vector<std::int64_t>& row : rows) {
      ids.insert(ids.end(), row.begin(), row.end());
    }
    std::vector<std::string> texts = bytes_->of(ids);
    count_amount(Amount::tokenizer_calls, 1);
    std::vector<std::vector<std::string>> all;
    auto next = std::make_move_iterator(texts.begin());
    for (const std::vector<std::int64_t>& row : rows) {
      all.emplace_back(next, next + std::ssize(row));
      next += std::ssize(row);
    }
    return all;
  }

 private:
  std::shared_ptr<const TokenBytes> bytes_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_text.bind("batch-text", [](std::shared_ptr<const TokenBytes> bytes) {
    return std::make_unique<BatchText>(std::move(bytes));
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) { return tokenizer_calls(counted, 1); }

[[maybe_unused]] const bool registered = register_variant({
    .name = "batch-text",
    .summary = "The texts of tokens come from one call of the tokenizer for each step.",
    .source = "text-generation-inference #604, decoding batched by step",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
