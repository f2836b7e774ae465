// Looks texts up in a table of all tokens.
#include <utility>

#include "engine/sampling/token_text.h"
#include "variants/registry.h"
#include "variants/token_text/token_text_variant.h"

namespace decodelab {
namespace {

class TableText final : public TokenText {
 public:
  explicit TableText(std::shared_ptr<const TokenBytes> bytes) : bytes_(std::move(bytes)) {}

  std::vector<std::vector<std::string>> texts(const std::vector<std::vector<std::int64_t>>& rows) const override {
    const std::vector<std::string>& table = bytes_->all();
    std::vector<std::vector<std::string>> all;
    for (const std::vector<std::int64_t>& row : rows) {
      std::vector<std::string>& of_row = all.emplace_back();
      of_row.reserve(row.size());
      for (const std::int64_t id : row) {
        of_row.push_back(id < std::ssize(table) ? table[static_cast<std::size_t>(id)] : std::string());
      }
    }
    return all;
  }

 private:
  std::shared_ptr<const TokenBytes> bytes_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_text.bind("table-text", [](std::shared_ptr<const TokenBytes> bytes) {
    return std::make_unique<TableText>(std::move(bytes));
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) { return tokenizer_calls(counted, 0); }

[[maybe_unused]] const bool registered = register_variant({
    .name = "table-text",
    .summary = "The texts of tokens stand in a table, which is made once for all tokens.",
    .source = "llama.cpp's table of token pieces",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
