// A bit a row and token: set by one scatter a step, and set anew after a truncation.
#include "engine/sampling/token_history.h"

#include <algorithm>
#include <utility>

namespace decodelab {

TokenHistory::TokenHistory(std::int64_t batch_size, std::int64_t vocabulary_size, at::Device device)
    : seen_(at::zeros({batch_size, vocabulary_size}, at::TensorOptions(at::kBool).device(device))) {}

void TokenHistory::add(std::span<const std::vector<std::int64_t>> prompts) {
  prompts_.assign(prompts.begin(), prompts.end());
  mark_prompts();
}

void TokenHistory::mark_prompts() {
  at::Tensor marks = at::zeros(seen_.sizes(), at::kBool);
  for (std::size_t row = 0; row < prompts_.size(); ++row) {
    bool* mark = marks.mutable_data_ptr<bool>() + static_cast<std::int64_t>(row) * seen_.size(1);
    for (const std::int64_t id : prompts_[row]) {
      mark[id] = true;
    }
  }
  seen_.copy_(marks);
}

void TokenHistory::add(const at::Tensor& ids, const std::vector<std::int64_t>& positions) {
  seen_.scatter_(1, ids, true);
  steps_.push_back({.ids = ids, .positions = positions});
}

void TokenHistory::truncate(std::int64_t length) {
  for (auto& prompt : prompts_) {
    prompt.resize(std::min(prompt.size(), static_cast<std::size_t>(length)));
  }
  mark_prompts();
  for (const Step& step : std::exchange(steps_, {})) {
    for (std::size_t row = 0; row < step.positions.size(); ++row) {
      if (step.positions[row] < length) {
        seen_[static_cast<std::int64_t>(row)].scatter_(0, step.ids[static_cast<std::int64_t>(row)], true);
      }
    }
    if (std::ranges::any_of(step.positions, [length](std::int64_t position) { return position < length; })) {
      steps_.push_back(step);
    }
  }
}

}  // namespace decodelab
