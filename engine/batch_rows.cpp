// Joins and drops rows by the rule of the slot `batching`.
#include "engine/batch_rows.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "profiles/range.h"

namespace decodelab {

std::int64_t BatchRows::open() const { return std::ssize(rows_) - std::ranges::count_if(rows_, &BatchRow::idle); }

/// Returns how many rows the batch has where `open` of them belong to requests.
std::int64_t BatchRows::rows_for(std::int64_t open) const {
  switch (rule_.rows) {
    case Rows::fixed_at_start: return std::max(open, std::ssize(rows_));
    case Rows::powers_of_two: return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(open)));
    case Rows::all: return most_rows_;
    case Rows::as_needed: break;
  }
  return open;
}

std::vector<std::int64_t> BatchRows::idle_places() const {
  std::vector<std::int64_t> places;
  for (std::size_t place = 0; place < rows_.size(); ++place) {
    if (rows_[place].idle()) {
      places.push_back(static_cast<std::int64_t>(place));
    }
  }
  return places;
}

void BatchRows::keep(std::int64_t rows) {
  std::int64_t spare = rows - open();
  std::vector<std::int64_t> kept;
  std::vector<BatchRow> left;
  for (std::size_t place = 0; place < rows_.size(); ++place) {
    if (!rows_[place].idle() || spare-- > 0) {
      kept.push_back(static_cast<std::int64_t>(place));
      left.push_back(rows_[place]);
    }
  }
  counts_.dropped_rows += std::ssize(rows_) - rows;
  count_amount(Amount::dropped_rows, std::ssize(rows_) - rows);
  session_->filter(kept);
  rows_ = std::move(left);
  changed_ = true;
}

void BatchRows::pad() {
  const std::int64_t rows = std::max(rows_for(open()), std::ssize(rows_));
  session_->pad(rows);
  rows_.resize(static_cast<std::size_t>(rows));
}

void BatchRows::join(Session session, const std::vector<BatchRow>& rows) {
  changed_ = true;
  if (rows_.empty()) {
    session_ = std::move(session);
    rows_ = rows;
    pad();
    return;
  }
  std::vector<std::int64_t> places = idle_places();
  if (rule_.rows != Rows::as_needed && places.size() >= rows.size()) {
    places.resize(rows.size());
    session_->put(places, std::move(session));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      rows_[static_cast<std::size_t>(places[row])] = rows[row];
    }
    counts_.placed_rows += std::ssize(rows);
    count_amount(Amount::placed_rows, std::ssize(rows));
    return;
  }
  if (!places.empty()) {
    keep(open());
  }
  session_->concatenate(std::move(session));
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  counts_.joined_rows += std::ssize(rows);
  count_amount(Amount::joined_rows, std::ssize(rows));
  pad();
}

std::vector<std::int64_t> BatchRows::begin_step() {
  // Not before: requests that came since the last step have taken the places of rows that ended.
  if (may_change() && rows_for(open()) < std::ssize(rows_)) {
    keep(rows_for(open()));
  }
  const std::vector<std::int64_t> idle = idle_places();
  const std::int64_t open = std::ssize(rows_) - std::ssize(idle);
  steps_ = changed_ ? 1 : steps_ + 1;
  changed_ = false;
  ++counts_.decode_steps;
  counts_.decoded_rows += open;
  counts_.most_rows = std::max(counts_.most_rows, open);
  counts_.idle_rows += std::ssize(idle);
  count_amount(Amount::idle_rows, std::ssize(idle));
  return idle;
}

StepResult BatchRows::decode() {
  const std::vector<std::int64_t> idle = begin_step();
  StepResult step = session_->decode();
  cut_back(idle);
  return step;
}

std::vector<RowRun> BatchRows::speculate(const std::function<std::int64_t(const BatchRow&)>& budget) {
  const std::vector<std::int64_t> idle = begin_step();
  std::vector<std::int64_t> budgets;
  for (const BatchRow& row : rows_) {
    budgets.push_back(row.idle() ? 0 : budget(row));
  }
  std::vector<RowRun> runs = session_->speculate(budgets);
  cut_back(idle);
  return runs;
}

/// Takes the last token back from rows that are idle, whose next step decodes it again: an idle row never needs more
/// room than its request asked for.
void BatchRows::cut_back(const std::vector<std::int64_t>& places) {
  const std::vector<std::int64_t> lengths = places.empty() ? std::vector<std::int64_t>() : session_->lengths();
  for (const std::int64_t place : places) {
    session_->truncate(place, lengths[static_cast<std::size_t>(place)] - 1);
  }
}

void BatchRows::settle(const std::function<bool(const BatchRow&)>& open_row) {
  std::vector<std::int64_t> ended;
  for (std::size_t place = 0; place < rows_.size(); ++place) {
    if (!rows_[place].idle() && !open_row(rows_[place])) {
      rows_[place] = {};
      ended.push_back(static_cast<std::int64_t>(place));
    }
  }
  if (open() == 0 && rule_.rows != Rows::all) {
    session_.reset();
    rows_.clear();
  }
  if (!rows_.empty()) {
    cut_back(ended);
  }
}

}  // namespace decodelab
