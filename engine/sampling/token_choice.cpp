// The reference of token choice: a loop over the rows.
#include "engine/sampling/token_choice.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "base/select_rows.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_history.h"
#include "engine/sampling/warpers.h"

namespace decodelab {
namespace {

/// Returns the logits [V] of a row after its penalty: in fp32, or as they are where there is none.
at::Tensor penalized(const at::Tensor& logits, const TokenHistory* history, std::int64_t row,
                     const SamplingParameters& wishes) {
  return wishes.penalizes() ? penalize_row(logits.to(at::kFloat), history->seen()[row].to(logits.device()), wishes)
                            : logits;
}

class RowByRowChoice final : public TokenChoice {
 public:
  explicit RowByRowChoice(const ChoiceOptions& options) : rows_(options) {}

  ChosenTokens choose(const at::Tensor& logits, const TokenHistory* history, Workspace&) override {
    std::vector<std::int64_t> chosen;
    const std::vector<SamplingParameters>& asked = rows_.parameters();
    std::vector<at::Tensor> probabilities;  // Of the sampled rows, [V] each.
    for (std::int64_t row = 0; row < logits.size(0); ++row) {
      const SamplingParameters wishes = asked.empty() ? SamplingParameters{} : asked[static_cast<std::size_t>(row)];
      const at::Tensor scores = penalized(logits[row], history, row, wishes);
      if (wishes.sample) {
        probabilities.push_back(at::softmax(warp_row(scores.to(at::kFloat), wishes), 0));
      }
      chosen.push_back(wishes.sample ? 0 : scores.argmax().item<std::int64_t>());
    }
    if (rows_.rng() != nullptr) {
      const at::Tensor drawn = rows_.rng()->draw(at::stack(probabilities)).cpu();
      for (std::size_t index = 0; index < rows_.sampled().size(); ++index) {
        chosen[static_cast<std::size_t>(rows_.sampled()[index])] = drawn.const_data_ptr<std::int64_t>()[index];
      }
    }
    at::Tensor device = at::tensor(chosen, at::kLong).to(logits.device()).unsqueeze(1);
    return {.host = HostTokens(std::move(chosen)), .device = std::move(device)};
  }

  void select(const std::vector<std::int64_t>& rows) override { rows_.select(rows); }
  void append(RowPart& other) override { rows_.append(std::move(dynamic_cast<RowByRowChoice&>(other).rows_)); }

 private:
  ChoiceRows rows_;
};

}  // namespace

bool ChoiceOptions::samples() const { return std::ranges::any_of(rows, &SamplingParameters::sample); }
bool ChoiceOptions::penalizes() const { return std::ranges::any_of(rows, &SamplingParameters::penalizes); }

ChoiceRows::ChoiceRows(const ChoiceOptions& options) : parameters_(options.rows) {
  find_sampled();
  RngOptions rng{.seeds = {}, .device = options.device};
  for (const std::int64_t row : sampled_) {
    rng.seeds.push_back(parameters_[static_cast<std::size_t>(row)].seed.value());
  }
  if (!rng.seeds.empty()) {
    rng_ = options.make_rng(rng);
  }
}

bool ChoiceRows::penalizes() const { return std::ranges::any_of(parameters_, &SamplingParameters::penalizes); }

void ChoiceRows::find_sampled() {
  sampled_.clear();
  for (std::size_t row = 0; row < parameters_.size(); ++row) {
    if (parameters_[row].sample) {
      sampled_.push_back(static_cast<std::int64_t>(row));
    }
  }
}

void ChoiceRows::select(const std::vector<std::int64_t>& rows) {
  if (parameters_.empty()) {
    return;
  }
  std::vector<std::int64_t> kept_draws;
  for (const std::int64_t row : rows) {
    const auto found = std::ranges::find(sampled_, row);
    if (found != sampled_.end()) {
      kept_draws.push_back(found - sampled_.begin());
    }
  }
  if (kept_draws.empty()) {
    rng_ = nullptr;
  } else {
    rng_->select(kept_draws);
  }
  parameters_ = select_rows(parameters_, rows);
  find_sampled();
}

void ChoiceRows::append(ChoiceRows&& other) {
  if (parameters_.empty() != other.parameters_.empty()) {
    throw std::logic_error("rows can be put together only where both sides say what each row asks");
  }
  std::ranges::move(other.parameters_, std::back_inserter(parameters_));
  find_sampled();
  if (rng_ != nullptr && other.rng_ != nullptr) {
    rng_->append(std::move(*other.rng_));
  } else if (other.rng_ != nullptr) {
    rng_ = std::move(other.rng_);
  }
}

at::Tensor processed_logits(const at::Tensor& logits, const TokenHistory* history,
                            std::span<const SamplingParameters> rows) {
  std::vector<at::Tensor> processed;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto index = static_cast<std::int64_t>(row);
    const at::Tensor scores = penalized(logits[index], history, index, rows[row]).to(at::kFloat);
    processed.push_back(rows[row].sample ? warp_row(scores, rows[row]) : scores);
  }
  return at::stack(processed);
}

std::unique_ptr<TokenChoice> make_row_by_row_choice(const ChoiceOptions& options) {
  return std::make_unique<RowByRowChoice>(options);
}

}  // namespace decodelab
