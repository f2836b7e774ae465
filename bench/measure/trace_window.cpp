// Passes each call on to all collectors.
#include "bench/measure/trace_window.h"

#include <ranges>

namespace decodelab {

void TraceWindow::start(const TraceConfig& config) {
  for (const auto& collector : collectors_) {
    collector->start(config);
  }
}

void TraceWindow::begin_step(const Step& step) {
  for (const auto& collector : collectors_) {
    collector->begin_step(step);
  }
}

void TraceWindow::end_step(const Step& step) {
  for (const auto& collector : std::views::reverse(collectors_)) {
    collector->end_step(step);
  }
}

void TraceWindow::stop() {
  for (const auto& collector : std::views::reverse(collectors_)) {
    collector->stop();
  }
}

void TraceWindow::drain(TraceEvents& events) {
  for (const auto& collector : collectors_) {
    collector->drain(events);
  }
}

}  // namespace decodelab
