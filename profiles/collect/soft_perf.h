// Counts what the system did to the thread of the steps: context switches, page faults, migrations and its time on a
// core, step by step.
#pragma once

#include <memory>

#include "profiles/collect/collector.h"

namespace decodelab {

/// Makes a collector that counts Linux' software events (perf_event_open(2)) of the calling thread and of those that it
/// starts from then on. Each event has one CounterPoint a step, at the start of the step that it counts, since viewers
/// hold a value until the next. The series are `context_switches`, `page_faults`, `cpu_migrations` and `task_clock_ns`.
/// An event that cannot be opened has no series, never zeros; where none can be opened, the collector says why.
std::unique_ptr<Collector> make_soft_perf_collector();

}  // namespace decodelab
