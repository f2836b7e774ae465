// The table of checks, and the words that they share.
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"
#include "profiles/trace/names.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostNamed = 5;

constexpr TraceVerdict kBroken = TraceVerdict::broken;
constexpr std::array<CheckDefinition, 17> kChecks{{
    // id, title, needs a device, adds times, when failed, function
    {"I1", "no record was dropped", false, false, kBroken, check_nothing_dropped},
    {"I2", "no stamp is zero, inverted or out of reach", false, false, kBroken, check_stamps},
    {"I3", "every device operation has one launch", true, false, kBroken, check_launch_of_each},
    {"I4", "no operation starts before its launch", true, true, kBroken, check_launch_before_start},
    {"I5", "operations of one stream do not overlap", true, true, kBroken, check_stream_order},
    {"I6", "host spans nest, and all are closed", false, true, kBroken, check_nesting},
    {"I7", "no device is busy for longer than the window", true, true, kBroken, check_busy_within_wall},
    {"I8", "launches and replays equal the engine's own count", true, true, kBroken, check_launch_counts},
    {"I9", "every step has work, and the same as its like", false, false, kBroken, check_step_coverage},
    {"I10", "the window covers the steps", false, false, kBroken, check_window},
    {"I11", "the clocks of host and device agree", true, true, kBroken, check_clocks},
    {"I12", "steps agree with an independent timer", false, true, kBroken, check_timer},
    {"I13", "tracing did not slow the steps down", false, false, TraceVerdict::contaminated, check_perturbation},
    {"I16", "every nanosecond is accounted for once", false, true, kBroken, check_conservation},
    {"I17", "modelled bytes fit the bandwidth", true, true, kBroken, check_bandwidth},
    {"I18", "the device's clock was steady", true, false, kBroken, check_steady_clock},
    {"I19", "the capture holds both ends of its work", false, false, TraceVerdict::partial, check_capture},
}};

}  // namespace

std::span<const CheckDefinition> check_table() { return kChecks; }

void NamedRows::add(const std::function<std::string()>& name) {
  if (names_.size() < kMostNamed) {
    names_.push_back(name());
  }
  ++count_;
}

std::string NamedRows::text() const {
  std::string text;
  for (const std::string& name : names_) {
    text += (text.empty() ? "" : "; ") + name;
  }
  const std::int64_t more = count_ - static_cast<std::int64_t>(names_.size());
  if (more > 0) {
    text += fmt::format("; and {} more", more);
  }
  return text;
}

std::string counted(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string time_text(std::int64_t ns) {
  const double magnitude = std::abs(static_cast<double>(ns));
  if (magnitude < 1e4) {
    return fmt::format("{} ns", ns);
  }
  if (magnitude < 1e7) {
    return fmt::format("{:.1f} us", static_cast<double>(ns) * 1e-3);
  }
  return fmt::format("{:.1f} ms", static_cast<double>(ns) * 1e-6);
}

std::string name_of(const Trace& trace, StringId name) {
  if (name == 0 || name >= trace.events().strings.size()) {
    return "(no name)";
  }
  return short_name(trace.text(name));
}

std::string collectors_off(const TraceSession& session) {
  std::string text;
  for (const CollectorState& collector : session.collectors) {
    if (collector.on || collector.reason.empty()) {
      continue;
    }
    text += fmt::format("{}{} is off ({})", text.empty() ? ": " : ", ", collector.name, collector.reason);
  }
  return text;
}

bool counts(const Step& step) { return step.excluded_reason.empty(); }

}  // namespace decodelab
