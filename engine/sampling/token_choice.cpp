// The reference of token choice: a loop over the rows.
#include "engine/sampling/token_choice.h"

#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_history.h"
#include "engine/sampling/warpers.h"

#include <algorithm>

namespace decodelab {
namespace {

class RowByRowChoice final : public TokenChoice {
 public:
  explicit RowByRowChoice(const ChoiceOptions& options)
      : rows_(options.rows), sampled_(sampled_rows(options)), rng_(rng_of(options)) {}

  ChosenTokens choose(const at::Tensor& logits, const TokenHistory* history, StepMemory&) override {
    ChosenTokens chosen;
    std::vector<at::Tensor> probabilities;  // Of the sampled rows, [V] each.
    for (std::int64_t row = 0; row < logits.size(0); ++row) {
      at::Tensor scores = logits[row];
      const SamplingParameters wishes = rows_.empty() ? SamplingParameters{} : rows_[static_cast<std::size_t>(row)];
      if (wishes.penalizes()) {
        scores = penalize_row(scores.to(at::kFloat), history->seen()[row], wishes);
      }
      if (wishes.sample) {
        probabilities.push_back(at::softmax(warp_row(scores.to(at::kFloat), wishes), 0));
      }
      chosen.host.push_back(wishes.sample ? 0 : scores.argmax().item<std::int64_t>());
    }
    if (rng_ != nullptr) {
      const at::Tensor drawn = rng_->draw(at::stack(probabilities)).cpu();
      for (std::size_t index = 0; index < sampled_.size(); ++index) {
        chosen.host[static_cast<std::size_t>(sampled_[index])] = drawn.const_data_ptr<std::int64_t>()[index];
      }
    }
    chosen.device = at::tensor(chosen.host, at::kLong).to(logits.device()).unsqueeze(1);
    return chosen;
  }

 private:
  std::vector<SamplingParameters> rows_;
  std::vector<std::int64_t> sampled_;
  std::unique_ptr<Rng> rng_;
};

}  // namespace

bool ChoiceOptions::samples() const { return std::ranges::any_of(rows, &SamplingParameters::sample); }
bool ChoiceOptions::penalizes() const { return std::ranges::any_of(rows, &SamplingParameters::penalizes); }

std::vector<std::int64_t> sampled_rows(const ChoiceOptions& options) {
  std::vector<std::int64_t> sampled;
  for (std::size_t row = 0; row < options.rows.size(); ++row) {
    if (options.rows[row].sample) {
      sampled.push_back(static_cast<std::int64_t>(row));
    }
  }
  return sampled;
}

std::unique_ptr<Rng> rng_of(const ChoiceOptions& options) {
  RngOptions rng{.seeds = {}, .device = options.device};
  for (const std::int64_t row : sampled_rows(options)) {
    rng.seeds.push_back(options.rows[static_cast<std::size_t>(row)].seed.value());
  }
  return rng.seeds.empty() ? nullptr : options.make_rng(rng);
}

std::unique_ptr<TokenChoice> make_row_by_row_choice(const ChoiceOptions& options) {
  return std::make_unique<RowByRowChoice>(options);
}

}  // namespace decodelab
