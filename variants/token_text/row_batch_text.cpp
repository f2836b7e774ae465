// Asks the tokenizer once for all tokens of a row.
#include <utility>

#include "engine/sampling/token_text.h"
#include "profiles/range.h"
#include "variants/registry.h"
#include "variants/token_text/token_text_variant.h"

namespace decodelab {
namespace {

class RowBatchText final : public TokenText {
 public:
  explicit RowBatchText(std::shared_ptr<const TokenBytes> bytes) : bytes_(std::move(bytes)) {}

  std::vector<std::vector<std::string>> texts(const std::vector<std::vector<std::int64_t>>& rows) const override {
    std::vector<std::vector<std::string>> all;
    for (const std::vector<std::int64_t>& row : rows) {
      all.push_back(bytes_->of(row));
      count_amount(Amount::tokenizer_calls, row.empty() ? 0 : 1);
    }
    return all;
  }

 private:
  std::shared_ptr<const TokenBytes> bytes_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_text.bind("row-batch-text", [](std::shared_ptr<const TokenBytes> bytes) {
    return std::make_unique<RowBatchText>(std::move(bytes));
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return tokenizer_calls(counted, counted.batch_size * counted.samples);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "row-batch-text",
    .summary = "The texts of tokens come from one call of the tokenizer for each row.",
    .source = "text-generation-inference #604, decoding batched by sequence",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
