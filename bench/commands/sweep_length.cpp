// Decides the number of launches: by the plan, by the time, or by the looks.
#include "bench/commands/sweep_length.h"

#include <algorithm>
#include <utility>

#include "reports/statistics/adaptive.h"
#include "reports/statistics/looks.h"

namespace decodelab {

SweepLength::SweepLength(Store& store, std::int64_t run_id, std::optional<double> budget_s)
    : store_(store), run_id_(run_id), budget_s_(budget_s), start_(std::chrono::steady_clock::now()) {
  const RunRecord run = store.load_run_record(run_id);
  planned_ = run.launches;
  adaptive_ = is_adaptive(run);
}

std::int64_t SweepLength::operator()(std::int64_t done) {
  if (first_ < 0) {
    first_ = done;
  }
  const double now_s = elapsed_s();
  launch_s_ = now_s - std::exchange(last_elapsed_s_, now_s);
  const std::int64_t wanted = adaptive_ ? to_next_look(done) : within_budget(done);
  if (wanted == done && done > 0 && done < planned_) {
    store_.set_launches(run_id_, done);
    planned_ = done;
  }
  return wanted;
}

std::int64_t SweepLength::within_budget(std::int64_t done) {
  // The first launch of a run checks its cells too, and says little about those after it.
  if (!budget_s_ || done - first_ != 2 || done >= planned_) {
    return planned_;
  }
  const double left = std::max(0.0, *budget_s_ - elapsed_s());
  const auto more =
      static_cast<std::int64_t>(std::min(left / std::max(launch_s_, 1e-9), static_cast<double>(planned_)));
  if (done + more < planned_) {
    planned_ = done + more;
    store_.set_launches(run_id_, planned_);
  }
  return planned_;
}

std::int64_t SweepLength::to_next_look(std::int64_t done) const {
  const std::vector<std::size_t> looks = adaptive_looks().looks;
  const auto next =
      std::ranges::find_if(looks, [&](std::size_t look) { return static_cast<std::int64_t>(look) > done; });
  const bool look_now = std::ranges::find(looks, static_cast<std::size_t>(done)) != looks.end();
  if (next == looks.end() || done >= planned_ || (look_now && is_decided(store_.load_run(run_id_)))) {
    return done;
  }
  const auto launches = static_cast<std::int64_t>(*next);
  // A look that has begun is finished.
  const bool begins = look_now || done == first_;
  const double end_s = elapsed_s() + launch_s_ * static_cast<double>(launches - done);
  return begins && done > first_ && budget_s_ && end_s > *budget_s_ ? done : launches;
}

double SweepLength::elapsed_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace decodelab
