// One bit per row and token: set by one scatter per step, and set anew after a truncation.
#include "engine/sampling/token_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/select_rows.h"

namespace decodelab {

TokenHistory::TokenHistory(std::int64_t batch_size, std::int64_t vocabulary_size, at::Device device)
    : seen_(at::zeros({batch_size, vocabulary_size}, at::TensorOptions(at::kBool).device(device))),
      prompts_(static_cast<std::size_t>(batch_size)) {}

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
  // Copied, since the next step may write its tokens over these.
  Step step{.ids = ids.clone(), .held = {}};
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const auto index = static_cast<std::int64_t>(row);
    step.held.push_back({.source = index, .row = index, .position = positions[row]});
  }
  steps_.push_back(std::move(step));
}

void TokenHistory::truncate(std::int64_t length) {
  for (auto& prompt : prompts_) {
    prompt.resize(std::min(prompt.size(), static_cast<std::size_t>(length)));
  }
  mark_prompts();
  for (Step& step : steps_) {
    std::erase_if(step.held, [length](const Held& token) { return token.position >= length; });
    for (const Held& token : step.held) {
      seen_[token.row].scatter_(0, step.ids[token.source], true);
    }
  }
  std::erase_if(steps_, [](const Step& step) { return step.held.empty(); });
}

void TokenHistory::select(const std::vector<std::int64_t>& rows) {
  std::vector<std::vector<std::int64_t>> places(prompts_.size());  // Of each old row: its new indices.
  for (std::size_t place = 0; place < rows.size(); ++place) {
    places.at(static_cast<std::size_t>(rows[place])).push_back(static_cast<std::int64_t>(place));
  }
  for (Step& step : steps_) {
    for (const Held& token : std::exchange(step.held, {})) {
      for (const std::int64_t place : places[static_cast<std::size_t>(token.row)]) {
        step.held.push_back({.source = token.source, .row = place, .position = token.position});
      }
    }
  }
  std::erase_if(steps_, [](const Step& step) { return step.held.empty(); });
  prompts_ = select_rows(prompts_, rows);
  seen_ = seen_.index_select(0, at::tensor(rows, at::kLong).to(seen_.device()));
}

void TokenHistory::append(TokenHistory&& other) {
  const auto above = static_cast<std::int64_t>(prompts_.size());
  for (Step& step : other.steps_) {
    for (Held& token : step.held) {
      token.row += above;
    }
    steps_.push_back(std::move(step));
  }
  std::ranges::move(other.prompts_, std::back_inserter(prompts_));
  seen_ = at::cat({seen_, other.seen_});
}

}  // namespace decodelab
