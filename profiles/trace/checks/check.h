// What the checks of a trace share: their input, their result, and the one table that names them all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "profiles/trace/attribution.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// The most by which the host's clock and the times of a device may differ, which is also the widest bracket that check
/// I11 accepts.
inline constexpr std::int64_t kClockToleranceNs = 1000;

struct CheckInput {
  const Trace& trace;
  const Attribution& account;  ///< The result of account(); empty where times do not add up.
  bool on_device = false;
  bool times_add_up = false;  ///< Whether sums over all rows stay far from overflowing.

  const TraceEvents& events() const { return trace.events(); }
};

/// The result of one check: a TraceCheck without id and title.
struct CheckResult {
  CheckStatus status = CheckStatus::passed;
  double value = 0;
  double limit = 0;
  std::string evidence;
};

inline CheckResult not_applicable(std::string why) {
  return {.status = CheckStatus::not_applicable, .evidence = std::move(why)};
}

struct CheckDefinition {
  const char* id;
  const char* title;
  bool needs_device;         ///< Not applicable where the engine ran on a CPU.
  bool adds_times;           ///< Not applicable where times cannot be added.
  TraceVerdict when_failed;  ///< Verdict on the trace where the check fails.
  CheckResult (*run)(const CheckInput& input);
};

/// Returns the checks I1 to I19, in that order. I14 and I15 were checks of written files; their numbers are not used
/// again.
std::span<const CheckDefinition> check_table();

/// How far apart the stamps of a trace lie and how large its amounts are, found without adding any two of them: files
/// may hold anything.
struct TraceReach {
  /// Time from the earliest stamp to the latest, or the largest amount; zero and open ends are left out.
  double largest = 0;
  std::int64_t rows = 0;

  /// Returns whether sums over the rows, of times between stamps or of amounts, stay below a quarter of what 64 bits
  /// hold.
  bool adds_up() const;
};
TraceReach reach_of(const TraceEvents& events);

/// Counts the rows that a check found, and keeps the names of the first five.
class NamedRows {
 public:
  void add(const std::function<std::string()>& name);
  std::int64_t count() const { return count_; }

  /// Returns "a; b; c; d; e; and 7 more".
  std::string text() const;

 private:
  std::vector<std::string> names_;
  std::int64_t count_ = 0;
};

/// Returns "1 step", "2 steps".
std::string counted(std::int64_t count, const char* noun);

/// Returns "12.3 us" and the like, for evidence.
std::string time_text(std::int64_t ns);

/// Returns the name of an operation or span; "(no name)" where it has none.
std::string name_of(const Trace& trace, StringId name);

/// Returns ": cupti is off (no driver)" and so on, for each collector that gives a reason; empty where all are on.
std::string collectors_off(const TraceSession& session);

bool counts(const Step& step);

CheckResult check_nothing_dropped(const CheckInput& input);      // I1, records.cpp
CheckResult check_stamps(const CheckInput& input);               // I2
CheckResult check_launch_of_each(const CheckInput& input);       // I3, launches.cpp
CheckResult check_launch_before_start(const CheckInput& input);  // I4
CheckResult check_stream_order(const CheckInput& input);         // I5, busy.cpp
CheckResult check_busy_within_wall(const CheckInput& input);     // I7
CheckResult check_nesting(const CheckInput& input);              // I6, nesting.cpp
CheckResult check_launch_counts(const CheckInput& input);        // I8, completeness.cpp
CheckResult check_step_coverage(const CheckInput& input);        // I9, coverage.cpp
CheckResult check_window(const CheckInput& input);               // I10, window.cpp
CheckResult check_clocks(const CheckInput& input);               // I11, clocks.cpp
CheckResult check_timer(const CheckInput& input);                // I12
CheckResult check_perturbation(const CheckInput& input);         // I13, machine.cpp
CheckResult check_bandwidth(const CheckInput& input);            // I17
CheckResult check_steady_clock(const CheckInput& input);         // I18
CheckResult check_capture(const CheckInput& input);              // I19, capture.cpp
CheckResult check_conservation(const CheckInput& input);         // I16, conservation.cpp

/// The launches and replays of one step that the engine counted and that have no row.
struct MissingLaunches {
  std::int64_t launches = 0;
  std::int64_t replays = 0;
  std::int64_t too_many = 0;
  bool any() const { return launches > 0 || replays > 0 || too_many > 0; }
};
/// Returns one element for each row of TraceEvents::steps. Does not look at steps that statistics leave out, that
/// nobody counted, or of which nothing at all was recorded.
std::vector<MissingLaunches> missing_launches(const TraceEvents& events);

}  // namespace decodelab
