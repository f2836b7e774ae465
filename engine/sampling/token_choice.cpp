// The reference of token choice: a loop over the rows.
#include "engine/sampling/token_choice.h"

#include "engine/sampling/chosen_tokens.h"

namespace decodelab {
namespace {

class RowByRowChoice final : public TokenChoice {
 public:
  ChosenTokens choose(const at::Tensor& logits) const override {
    ChosenTokens chosen;
    for (std::int64_t row = 0; row < logits.size(0); ++row) {
      chosen.host.push_back(logits[row].argmax().item<std::int64_t>());
    }
    chosen.device = at::tensor(chosen.host, at::kLong).to(logits.device()).unsqueeze(1);
    return chosen;
  }
};

}  // namespace

std::unique_ptr<TokenChoice> make_row_by_row_choice() { return std::make_unique<RowByRowChoice>(); }

}  // namespace decodelab
