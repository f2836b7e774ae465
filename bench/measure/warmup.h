// The rule that ends warm-up: long enough, and steps that no longer change.
#pragma once

#include <array>
#include <cstdint>

namespace decodelab {

/// Most warm-up steps of a visit; a cell needs room for them: length + kWarmupMaximumSteps + timed steps <= positions.
inline constexpr std::int64_t kWarmupMaximumSteps = 50;
/// The rest of the rule; see Warmup.
inline constexpr std::int64_t kWarmupMinimumNs = 20'000'000;    ///< A core's clock needs some milliseconds to rise.
inline constexpr std::int64_t kWarmupSlowStepNs = 500'000'000;  ///< Eight such steps would cost more than they tell.
inline constexpr std::int64_t kWarmupWindow = 8;
/// A window of steps that is still unquiet after so long will hardly become quiet by more: the machine is noisy, not
/// cold.
inline constexpr std::int64_t kWarmupMaximumNs = 2'000'000'000;
inline constexpr double kWarmupQuietShare = 0.01;

/// Steps that a warm-up takes where nothing disturbs it, for a plan of the time; noise makes it longer.
std::int64_t expected_warmup_steps(std::int64_t step_ns);

/// Fed with the time of each warm-up step, says when to stop; it runs nothing and reads no clock.
///
/// Warm-up is over after at least one step and 20 ms once the cell is quiet, after a window of steps and
/// kWarmupMaximumNs, or after kWarmupMaximumSteps, whatever they took: for steps below 0.4 ms the limit comes before
/// the 20 ms, for it is what room in the positions was kept for. Quiet means that the later half of the last 8 steps
/// differs from the earlier half by less than 1 % of it, or by less than the gaps between the two steps about each
/// half's median, added up: a trend is twice that, and noise is not ended by more steps. Each half counts by the median
/// of its 4 steps, since a cost that comes every 8th step (a cache that grows in blocks) falls into one half and would
/// keep any mean unquiet. A first step over 0.5 s is enough by itself. The design knows the 1 % alone, by which a
/// machine whose steps vary by 3 % spends a third of each block in warm-up, and asks that the counters of a step repeat
/// too; counting is a pass of its own (Probe::unsteady), so the rule is of times alone.
class Warmup final {
 public:
  /// Throws std::invalid_argument for a time below 0. Steps after done() are counted and may change quiet().
  void add(std::int64_t step_ns);

  bool done() const;
  /// Whether the steps so far are quiet; false when done() is a `warmup-not-quiet` flag on the row.
  bool quiet() const;
  std::int64_t steps() const { return steps_; }
  std::int64_t total_ns() const { return total_ns_; }

 private:
  std::array<std::int64_t, kWarmupWindow> last_{};  ///< A ring: step i is at i % kWarmupWindow.
  std::int64_t steps_ = 0;
  std::int64_t total_ns_ = 0;
  bool slow_ = false;  ///< The first step alone was over 0.5 s.
};

}  // namespace decodelab
