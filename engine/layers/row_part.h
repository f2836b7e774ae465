// What every part of a batch's state does when rows leave, come, or are cut: one interface, so that a part that is
// added cannot be forgotten.
#pragma once

#include <cstdint>
#include <vector>

namespace decodelab {

/// Rows that take the places of others.
struct RowsInPlaces {
  std::vector<std::int64_t> places;   ///< Of each row that comes: the row whose place it takes. No two are alike.
  std::vector<std::int64_t> sources;  ///< Of each row then: its number where those that come stand under all others.
};

/// A part of a batch's state that holds something for each row. Rows are counted from 0.
class RowPart {
 public:
  virtual ~RowPart() = default;

  /// Keeps these rows, in this order; a row that is named twice is continued twice. Each exists.
  virtual void select(const std::vector<std::int64_t>& rows) = 0;
  /// Puts the rows of `other` under its own. Both were made by one engine for one purpose; `other` must not be used
  /// afterwards.
  virtual void append(RowPart& other) = 0;
  /// Does what append() and select() of `rows.sources` do; a part that can copies only what comes.
  virtual void put(const RowsInPlaces& rows, RowPart& other) {
    append(other);
    select(rows.sources);
  }
  /// Forgets what a row holds from token `length` on; parts that depend on no token do nothing.
  virtual void truncate(std::int64_t row, std::int64_t length) = 0;
};

}  // namespace decodelab
