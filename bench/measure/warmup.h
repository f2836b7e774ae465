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
/// Steps that are still not quiet after this time will hardly become so: the machine is noisy, not cold.
inline constexpr std::int64_t kWarmupMaximumNs = 2'000'000'000;
inline constexpr double kWarmupQuietShare = 0.01;

/// Returns the steps that a warm-up takes where nothing disturbs it, for estimates of time; noise makes it longer.
std::int64_t expected_warmup_steps(std::int64_t step_ns);

/// Decides from the times of the warm-up steps when warm-up ends; it runs nothing and reads no clock.
///
/// Warm-up ends when the first of these holds: the steps are quiet and have taken 20 ms; there were a window of steps
/// and kWarmupMaximumNs; there were kWarmupMaximumSteps, the number that positions are reserved for. Steps below 0.4 ms
/// reach that number before the 20 ms.
///
/// Quiet means that the medians of the earlier and the later half of the last 8 steps differ by less than 1 % of the
/// earlier one, or by less than the sum of two gaps: in each half, that between the two steps about the median. A
/// steady trend differs by twice that sum; a smaller difference is noise, which more steps do not end. Each half counts
/// by the median of its 4 steps, since a cost that comes every 8th step (a cache that grows in blocks) falls into one
/// half and would keep any mean unquiet. A first step over 0.5 s is enough by itself.
///
/// The design differs in two points. It has the 1 % rule alone, by which a machine whose steps vary by 3 % spends a
/// third of each block in warm-up. It also asks that the counters of a step repeat; here counting is a pass of its own
/// (Probe::unsteady), so the rule uses times alone.
class Warmup final {
 public:
  /// Adds the time of a step. Throws std::invalid_argument for a time below 0. Steps after done() are counted and may
  /// change quiet().
  void add(std::int64_t step_ns);

  bool done() const;
  /// Returns whether the steps so far are quiet; where they are not when done() is true, the row gets the flag
  /// `warmup-not-quiet`.
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
