// Writes a trace for Perfetto's viewer (https://ui.perfetto.dev): it is written, never read back.
#pragma once

#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"
#include "profiles/write/output.h"

namespace decodelab {

/// Track events only, in the order of time: processes with their threads, "GPU n" with the lanes of its streams and the ranges of steps,
/// layers and stages, counters, and an arrow from each launch to what it launched. An instant at the start says the verdict. Every
/// column of every row is there; equal traces give equal bytes. Throws std::runtime_error where rows overlap beyond what lanes can hold.
void write_perfetto(const Trace& trace, const TraceQuality& quality, const ByteSink& sink);

}  // namespace decodelab
