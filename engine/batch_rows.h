// The rows of a batch that decodes, and how they join and leave it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "engine/sequences/sequence_slots.h"

namespace decodelab {

/// A row of a session: a sample of a request, or nobody's.
struct BatchRow {
  static constexpr std::int64_t kNobody = -1;
  std::int64_t request = kNobody;
  std::size_t sample = 0;

  bool idle() const { return request == kNobody; }
};

/// What the rows of a batch have done so far.
struct BatchRowCounts {
  std::int64_t decode_steps = 0;
  std::int64_t decoded_rows = 0;  ///< Rows of requests, of all decode steps together.
  std::int64_t idle_rows = 0;     ///< Rows of nobody, of all decode steps together.
  std::int64_t most_rows = 0;     ///< Rows of requests in one decode step.
  std::int64_t joined_rows = 0;   ///< Rows that joined others by copying all of them.
  std::int64_t placed_rows = 0;   ///< Rows that took the place of an idle one.
  std::int64_t dropped_rows = 0;  ///< Rows that left while others stayed.
};

/// Rows that decode together under a BatchingRule. Every row of a request gets the tokens that it would get alone; idle
/// rows decode their last token again and again, and nobody reads it.
class BatchRows {
 public:
  /// `most_rows` is the most rows that requests have at a time.
  BatchRows(const BatchingRule& rule, std::int64_t most_rows) : rule_(rule), most_rows_(most_rows) {}

  /// Takes rows that have chosen their first token.
  void join(Session session, const std::vector<BatchRow>& rows);
  /// Drops idle rows where the rule says so, and runs a decode step of the others; there is at least one of a request.
  StepResult decode();
  /// Does the same with a round of speculation, in which at most budget(row) guesses of a request's row may stand.
  std::vector<RowRun> speculate(const std::function<std::int64_t(const BatchRow&)>& budget);
  /// Makes idle the rows that are not open any more.
  void settle(const std::function<bool(const BatchRow&)>& open);

  const std::vector<BatchRow>& rows() const { return rows_; }
  /// Returns how many rows belong to requests.
  std::int64_t open() const;
  /// Returns whether the rule lets requests begin now.
  bool takes_requests() const { return open() == 0 || may_change(); }
  const BatchRowCounts& counts() const { return counts_; }
  std::int64_t cache_bytes() const { return session_ ? session_->cache_bytes() : 0; }

 private:
  using Rows = BatchingRule::Rows;

  bool may_change() const { return rule_.rows != Rows::fixed_at_start && steps_ >= rule_.every; }
  std::int64_t rows_for(std::int64_t open) const;
  std::vector<std::int64_t> idle_places() const;
  void cut_back(const std::vector<std::int64_t>& places);
  /// Does what precedes a step, and counts it. Returns the places of idle rows.
  std::vector<std::int64_t> begin_step();
  /// Keeps so many rows: all of requests, and of the idle ones as many as that leaves.
  void keep(std::int64_t rows);
  void pad();

  BatchingRule rule_;
  std::int64_t most_rows_;
  std::optional<Session> session_;
  std::vector<BatchRow> rows_;
  std::int64_t steps_ = 0;  ///< Decode steps since the first after rows joined or left.
  bool changed_ = false;    ///< Rows joined or left since the last decode step.
  BatchRowCounts counts_;
};

}  // namespace decodelab
