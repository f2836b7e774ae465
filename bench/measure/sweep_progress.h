// The progress of a whole sweep: its loads, checks and blocks as pieces of one estimate.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "bench/measure/progress.h"
#include "bench/plan/sweep_plan.h"
#include "reports/store/record.h"

namespace decodelab {

/// Shows the progress of the whole sweep; called when something happened and every half second.
using ProgressDisplay = std::function<void(double fraction, double remaining_seconds, const std::string& label)>;

/// The pieces of all launches and how far they are.
class SweepProgress final {
 public:
  /// Blocks in `finished`, as (launch, block, cell's id), were done by an earlier session of the run. `data` and
  /// `config` must outlive this.
  SweepProgress(const RunData& data, const ModelConfig& config, std::int64_t max_tokens,
                const std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>>& finished);

  /// `kind` is load, check, recheck or block; `cell` an index into the run's cells.
  void started(std::int64_t launch, const std::string& kind, std::int64_t cell);
  /// `block_seconds`: what a check expects a block of its cell to take; 0 where it is no check or the cell has no
  /// blocks.
  void done(double seconds, double block_seconds);
  /// Marks the pieces that the launch left undone as skipped.
  void launch_ended(std::int64_t launch);
  void show(const ProgressDisplay& display) const;

 private:
  using Key = std::tuple<std::int64_t, std::string, std::int64_t, std::int64_t>;  // launch, kind, cell, block

  std::vector<ProgressPiece> make_pieces(const ModelConfig& config, std::int64_t max_tokens);
  bool runs(const CellRecord& cell) const;
  std::optional<std::size_t> first_open(std::int64_t launch, const std::string& kind, std::int64_t cell) const;
  void calibrate(std::int64_t cell, double block_seconds);
  double seconds_of_block(std::int64_t launch, std::int64_t block, std::int64_t cell) const;

  const RunData& data_;
  std::map<Key, std::size_t> index_;
  Progress progress_;
  std::set<std::size_t> ended_;
  std::optional<std::size_t> running_;
  std::int64_t running_cell_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::string label_;
};

}  // namespace decodelab
