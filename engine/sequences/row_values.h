// Values that a batch has one of for each row, as parts of its state.
#pragma once

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "base/select_rows.h"
#include "engine/layers/row_part.h"
#include "engine/tensor.h"

namespace decodelab {

/// A value of each row on the host.
template <typename Value>
struct RowValues : RowPart {
  std::vector<Value> values;

  void select(const std::vector<std::int64_t>& rows) override { values = select_rows(values, rows); }
  void append(RowPart& other) override {
    std::ranges::move(dynamic_cast<RowValues&>(other).values, std::back_inserter(values));
  }
  void truncate(std::int64_t, std::int64_t) override {}
};

/// Holds all tokens that each row was fed: what a cache that keeps nothing is given again.
struct RowTokens final : RowValues<std::vector<std::int64_t>> {
  void truncate(std::int64_t row, std::int64_t length) override {
    values[static_cast<std::size_t>(row)].resize(static_cast<std::size_t>(length));
  }
};

/// A row of a tensor [B, ..] for each row, or no tensor.
struct RowTensor final : RowPart {
  at::Tensor value;

  void select(const std::vector<std::int64_t>& rows) override {
    if (value.defined()) {
      value = value.index_select(0, at::tensor(rows, at::kLong).to(value.device()));
    }
  }
  /// Leaves no tensor where one of both sides has none.
  void append(RowPart& part) override {
    const at::Tensor& other = dynamic_cast<RowTensor&>(part).value;
    value = value.defined() && other.defined() ? at::cat({value, other}) : at::Tensor();
  }
  void truncate(std::int64_t, std::int64_t) override {}
};

}  // namespace decodelab
