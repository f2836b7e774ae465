// Writes a trace as PyTorch's profiler does, for the tools that read that: HolisticTraceAnalysis, TraceLens, chrome://tracing.
#pragma once

#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"
#include "profiles/write/output.h"

namespace decodelab {

/// Categories, argument names and "ac2g" arrows are kineto's (pytorch/kineto, output_json.cpp); every step is a ProfilerStep#N of the
/// main thread. Waits carry no `stream`, which HolisticTraceAnalysis would count as busy, but `wait_on_stream`. Replays that are one
/// row have the category cuda_graph, so that nobody counts them as kernels. Our own columns have names of their own beside kineto's.
void write_kineto_json(const Trace& trace, const TraceQuality& quality, const ByteSink& sink);

}  // namespace decodelab
