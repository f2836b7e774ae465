// How many launches a sweep makes: as planned, as many as fit the time, or as many as decide it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "reports/store/store.h"

namespace decodelab {

/// Decides after each launch how many launches the sweep makes in all.
///
/// With a time budget the number is fixed after the second launch, by how long a launch takes and by nothing that it
/// measured, so that tests over launches stay valid; it is never more than planned. An adaptive run (is_adaptive())
/// ends at the first look that decides every contrast, at the last look, or before a look that would end after the
/// budget.
class SweepLength {
 public:
  /// `store` must outlive this object. `budget_s` are seconds from now on; empty: no limit.
  SweepLength(Store& store, std::int64_t run_id, std::optional<double> budget_s);

  /// Returns how many launches there shall be in all when `done` of them are done; the sweep ends where the two are
  /// equal.
  std::int64_t operator()(std::int64_t done);

 private:
  std::int64_t within_budget(std::int64_t done);
  std::int64_t to_next_look(std::int64_t done) const;
  double elapsed_s() const;

  Store& store_;
  std::int64_t run_id_;
  std::int64_t planned_;
  bool adaptive_;
  std::optional<double> budget_s_;
  std::chrono::steady_clock::time_point start_;
  std::int64_t first_ = -1;    ///< Launches that were done at the first call.
  double last_elapsed_s_ = 0;  ///< When the launch before the last one had ended.
  double launch_s_ = 0;        ///< How long the last launch took.
};

}  // namespace decodelab
