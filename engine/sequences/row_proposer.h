// Proposers that look at one row at a time.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/select_rows.h"
#include "engine/sequences/proposer.h"

namespace decodelab {

/// Keeps one `Row` for each row: a copyable object with add(token), guess(most), and tokens(), which returns those that
/// were added.
template <typename Row>
class RowProposer final : public Proposer {
 public:
  /// Rows begin as copies of `fresh`, and guess at most `most` tokens.
  RowProposer(std::int64_t rows, const Row& fresh, std::int64_t most)
      : fresh_(fresh), rows_(static_cast<std::size_t>(rows), fresh), most_(most) {}

  void add(std::int64_t row, std::span<const std::int64_t> tokens) override {
    for (const std::int64_t token : tokens) {
      rows_[static_cast<std::size_t>(row)].add(token);
    }
  }
  std::vector<std::vector<std::int64_t>> propose(std::span<const std::int64_t> budgets) override {
    std::vector<std::vector<std::int64_t>> guesses;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      guesses.push_back(rows_[row].guess(std::min(budgets[row], most_)));
    }
    return guesses;
  }

  void select(const std::vector<std::int64_t>& rows) override { rows_ = select_rows(rows_, rows); }
  void append(RowPart& other) override {
    std::ranges::move(dynamic_cast<RowProposer&>(other).rows_, std::back_inserter(rows_));
  }
  void truncate(std::int64_t row, std::int64_t length) override {
    Row& whole = rows_[static_cast<std::size_t>(row)];
    if (length >= std::ssize(whole.tokens())) {
      return;
    }
    Row kept = fresh_;
    for (std::int64_t token = 0; token < length; ++token) {
      kept.add(whole.tokens()[static_cast<std::size_t>(token)]);
    }
    whole = std::move(kept);
  }

 private:
  Row fresh_;
  std::vector<Row> rows_;
  std::int64_t most_;
};

}  // namespace decodelab
