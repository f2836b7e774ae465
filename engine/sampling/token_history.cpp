// One bit per row and token: set by one operator per step, and set anew after a truncation.
#include "engine/sampling/token_history.h"

#include <iterator>
#include <utility>

namespace decodelab {

TokenHistory::TokenHistory(std::int64_t batch_size, std::int64_t vocabulary_size, at::Device device)
    : seen_(at::zeros({batch_size, vocabulary_size}, at::TensorOptions(at::kBool).device(device))) {}

void TokenHistory::mark(const Step& step) {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> sources;
  for (const Held& token : step.held) {
    rows.push_back(token.row);
    sources.push_back(token.source);
  }
  const auto on_device = [&](const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::kLong).to(seen_.device());
  };
  seen_.index_put_({on_device(rows), step.ids.index_select(0, on_device(sources))},
                   at::scalar_tensor(true, seen_.options()));
}

void TokenHistory::add(const std::vector<std::vector<std::int64_t>>& tokens,
                       const std::vector<std::int64_t>& positions) {
  std::vector<std::int64_t> ids;
  Step step;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    for (std::size_t token = 0; token < tokens[row].size(); ++token) {
      step.held.push_back({.source = std::ssize(ids),
                           .row = static_cast<std::int64_t>(row),
                           .position = positions[row] + static_cast<std::int64_t>(token)});
      ids.push_back(tokens[row][token]);
    }
  }
  step.ids = at::tensor(ids, at::kLong).to(seen_.device());
  mark(step);
  steps_.push_back(std::move(step));
}

void TokenHistory::add(const at::Tensor& ids, const std::vector<std::int64_t>& positions) {
  seen_.scatter_(1, ids, true);
  // Copied, since the next step may write its tokens over these.
  Step step{.ids = ids.flatten().clone(), .held = {}};
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const auto index = static_cast<std::int64_t>(row);
    step.held.push_back({.source = index, .row = index, .position = positions[row]});
  }
  steps_.push_back(std::move(step));
}

void TokenHistory::truncate(std::int64_t row, std::int64_t length) {
  seen_.select(0, row).zero_();
  for (Step& step : steps_) {
    std::erase_if(step.held, [&](const Held& token) { return token.row == row && token.position >= length; });
    Step of_row{.ids = step.ids, .held = step.held};
    std::erase_if(of_row.held, [row](const Held& token) { return token.row != row; });
    if (!of_row.held.empty()) {
      mark(of_row);
    }
  }
  std::erase_if(steps_, [](const Step& step) { return step.held.empty(); });
}

void TokenHistory::select(const std::vector<std::int64_t>& rows) {
  std::vector<std::vector<std::int64_t>> places(
      static_cast<std::size_t>(seen_.size(0)));  // Of each old row: its new indices.
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
  seen_ = seen_.index_select(0, at::tensor(rows, at::kLong).to(seen_.device()));
}

void TokenHistory::append(RowPart& part) {
  auto& other = dynamic_cast<TokenHistory&>(part);
  const std::int64_t above = seen_.size(0);
  for (Step& step : other.steps_) {
    for (Held& token : step.held) {
      token.row += above;
    }
    steps_.push_back(std::move(step));
  }
  seen_ = at::cat({seen_, other.seen_});
}

}  // namespace decodelab
