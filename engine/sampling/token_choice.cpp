// The reference of token choice: a loop over the rows.
#include "engine/sampling/token_choice.h"

#include <algorithm>
#include <iterator>
#include <numeric>
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

std::vector<std::int64_t> all_of(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

class RowByRowChoice final : public TokenChoice {
 public:
  explicit RowByRowChoice(const ChoiceOptions& options) : rows_(options) {}

  ChosenTokens choose(const ChoiceTask& task) override {
    const std::vector<std::int64_t> rows = task.rows == nullptr ? all_of(task.logits.size(0)) : *task.rows;
    const ChoiceRows::Part part = rows_.part(rows);
    std::vector<std::int64_t> chosen;
    std::vector<at::Tensor> probabilities;  // Of the sampled rows, [V] each.
    for (std::size_t index = 0; index < rows.size(); ++index) {
      const SamplingParameters wishes = part.parameters.empty() ? SamplingParameters{} : part.parameters[index];
      const at::Tensor scores =
          penalized(task.logits[static_cast<std::int64_t>(index)], task.history, rows[index], wishes);
      if (wishes.sample) {
        probabilities.push_back(at::softmax(warp_row(scores.to(at::kFloat), wishes), 0));
      }
      chosen.push_back(wishes.sample ? 0 : scores.argmax().item<std::int64_t>());
    }
    if (!probabilities.empty()) {
      const at::Tensor drawn = rows_.rng()->draw(at::stack(probabilities), part.draws).cpu();
      for (std::size_t index = 0; index < part.sampled.size(); ++index) {
        chosen[static_cast<std::size_t>(part.sampled[index])] = drawn.const_data_ptr<std::int64_t>()[index];
      }
    }
    at::Tensor device = at::tensor(chosen, at::kLong).to(task.logits.device()).unsqueeze(1);
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

ChoiceRows::Part ChoiceRows::part(const std::vector<std::int64_t>& rows) const {
  if (parameters_.empty()) {
    return {};
  }
  Part part{.parameters = select_rows(parameters_, rows), .sampled = {}, .draws = {}};
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const auto found = std::ranges::find(sampled_, rows[index]);
    if (found != sampled_.end()) {
      part.sampled.push_back(static_cast<std::int64_t>(index));
      part.draws.push_back(found - sampled_.begin());
    }
  }
  return part;
}

void ChoiceRows::select(const std::vector<std::int64_t>& rows) {
  if (parameters_.empty()) {
    return;
  }
  Part kept = part(rows);
  if (kept.draws.empty()) {
    rng_ = nullptr;
  } else {
    rng_->select(kept.draws);
  }
  parameters_ = std::move(kept.parameters);
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
                            std::span<const SamplingParameters> asked, const std::vector<std::int64_t>& rows) {
  std::vector<at::Tensor> processed;
  for (std::size_t line = 0; line < rows.size(); ++line) {
    const SamplingParameters& wishes = asked[static_cast<std::size_t>(rows[line])];
    const at::Tensor scores =
        penalized(logits[static_cast<std::int64_t>(line)], history, rows[line], wishes).to(at::kFloat);
    processed.push_back(wishes.sample ? warp_row(scores, wishes) : scores);
  }
  return at::stack(processed);
}

std::unique_ptr<TokenChoice> make_row_by_row_choice(const ChoiceOptions& options) {
  return std::make_unique<RowByRowChoice>(options);
}

}  // namespace decodelab
