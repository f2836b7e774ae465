// Reads software events around each step.
#include "profiles/collect/soft_perf.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiles/collect/thread_spans.h"

namespace decodelab {
namespace {

struct SoftEvent {
  const char* series;
  std::uint64_t number;
};
constexpr std::array<SoftEvent, 4> kSoftEvents{{{"context_switches", PERF_COUNT_SW_CONTEXT_SWITCHES},
                                                {"page_faults", PERF_COUNT_SW_PAGE_FAULTS},
                                                {"cpu_migrations", PERF_COUNT_SW_CPU_MIGRATIONS},
                                                {"task_clock_ns", PERF_COUNT_SW_TASK_CLOCK}}};

/// An open event, or why there is none.
class EventFile final {
 public:
  explicit EventFile(std::uint64_t number) {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof attributes;
    attributes.config = number;
    attributes.inherit = 1;
    // Counting inside the kernel needs a privilege where kernel.perf_event_paranoid is 2, as it is by default. Context
    // switches happen in the kernel and are counted as 0 without it; so the count with the kernel is tried first.
    for (const bool without_kernel : {false, true}) {
      attributes.exclude_kernel = without_kernel ? 1 : 0;
      attributes.exclude_hv = attributes.exclude_kernel;
      file_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
      if (file_ >= 0) {
        without_kernel_ = without_kernel;
        return;
      }
      error_ = errno;
    }
  }
  ~EventFile() {
    if (file_ >= 0) {
      close(file_);
    }
  }
  EventFile(EventFile&& other) noexcept
      : file_(std::exchange(other.file_, -1)), error_(other.error_), without_kernel_(other.without_kernel_) {}
  EventFile& operator=(EventFile&&) = delete;

  bool open() const { return file_ >= 0; }
  bool without_kernel() const { return without_kernel_; }
  int error() const { return error_; }
  std::int64_t value() const {
    std::uint64_t count = 0;
    return read(file_, &count, sizeof count) == sizeof count ? static_cast<std::int64_t>(count) : 0;
  }

 private:
  int file_ = -1;
  int error_ = 0;
  bool without_kernel_ = false;
};

std::string refusal(int error) {
  const char* const advice = error == EACCES || error == EPERM
                                 ? "; kernel.perf_event_paranoid or the container's seccomp filter forbids it"
                                 : "";
  return std::string("perf_event_open failed: ") + std::strerror(error) + advice;
}

struct CountedEvent {
  const SoftEvent* event;
  EventFile file;
  std::int64_t before = 0;
};

class SoftPerfCollector final : public Collector {
 public:
  std::string name() const override { return "perf"; }

  Capability probe() override {
    const EventFile file(PERF_COUNT_SW_TASK_CLOCK);
    return file.open() ? Capability{.available = true} : Capability{.reason = refusal(file.error())};
  }

  void start(const TraceConfig& config) override {
    most_points_ = config.most_events;
    reason_.clear();
    points_.clear();
    events_.clear();
    for (const SoftEvent& event : kSoftEvents) {
      EventFile file(event.number);
      // Switches and migrations happen in the kernel: without the kernel their count is 0, which would be wrong.
      const bool in_kernel =
          event.number == PERF_COUNT_SW_CONTEXT_SWITCHES || event.number == PERF_COUNT_SW_CPU_MIGRATIONS;
      if (file.open() && !(file.without_kernel() && in_kernel)) {
        events_.push_back({.event = &event, .file = std::move(file)});
      } else if (reason_.empty()) {
        reason_ = file.open() ? std::string(event.series) +
                                    " is not counted: it happens in the kernel, which "
                                    "kernel.perf_event_paranoid hides"
                              : refusal(file.error());
      }
    }
  }

  void begin_step(const Step&) override {
    step_start_ns_ = trace_clock_ns();
    for (CountedEvent& counted : events_) {
      counted.before = counted.file.value();
    }
  }

  void end_step(const Step&) override {
    for (const CountedEvent& counted : events_) {
      if (static_cast<std::int64_t>(points_.size()) == most_points_) {
        ++dropped_;
        continue;
      }
      points_.push_back({step_start_ns_, counted.event->series, counted.file.value() - counted.before});
    }
  }

  void stop() override {}

  void drain(TraceEvents& events) override {
    for (const Point& point : points_) {
      events.counters.push_back({.time_ns = point.time_ns,
                                 .series = events.strings.id(point.series),
                                 .value = static_cast<double>(point.value)});
    }
    events.session.dropped_records += std::exchange(dropped_, 0);
    events.session.collectors.push_back(
        {.name = name(), .on = !events_.empty(), .reason = events_.empty() ? reason_ : ""});
    points_.clear();
    events_.clear();
  }

 private:
  std::int64_t step_start_ns_ = 0;
  struct Point {
    std::int64_t time_ns;
    const char* series;
    std::int64_t value;
  };
  std::vector<CountedEvent> events_;
  std::vector<Point> points_;
  std::string reason_;
  std::int64_t most_points_ = 0;
  std::int64_t dropped_ = 0;
};

}  // namespace

std::unique_ptr<Collector> make_soft_perf_collector() { return std::make_unique<SoftPerfCollector>(); }

}  // namespace decodelab
