// The writers of each format: Perfetto's viewer, PyTorch's profiler (HolisticTraceAnalysis, TraceLens,
// chrome://tracing), and SQLite.
#pragma once

#include <cstdint>
#include <filesystem>

#include "profiles/trace/attribution.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"
#include "profiles/write/output.h"

namespace decodelab {

/// Track events only, in the order of time: processes with their threads, "GPU n" with the lanes of its streams and the
/// ranges of steps, layers and stages, counters, and an arrow from each launch to what it launched. An instant at the
/// start says the verdict. Every column of every row is there; equal traces give equal bytes. Throws std::runtime_error
/// where rows overlap beyond what lanes can hold.
void write_perfetto(const Trace& trace, const TraceQuality& quality, const ByteSink& sink);

/// Categories, argument names and "ac2g" arrows are kineto's (pytorch/kineto, output_json.cpp); every step is a
/// ProfilerStep#N of the main thread. Waits carry no `stream`, which HolisticTraceAnalysis would count as busy, but
/// `wait_on_stream`. Replays that are one row have the category cuda_graph, so that nobody counts them as kernels. Our
/// own columns have names of their own beside kineto's.
void write_kineto_json(const Trace& trace, const TraceQuality& quality, const ByteSink& sink);

/// Makes the file at `path`, which must not be there. Engine spans and operators are NVTX push-pop ranges, with columns
/// of ours behind those of nsys. The account of gaps is empty for a broken trace, and QUALITY says why. Throws
/// std::runtime_error where the file cannot be written.
void write_trace_sqlite(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
                        const std::filesystem::path& path);

/// nsys packs the ids of a process and a thread into one number, 24 bits each; those that do not fit get free ones, and
/// the table THREAD has all of them as they are.
inline constexpr int kGlobalIdBits = 24;
inline constexpr std::int64_t kGlobalIdLimit = std::int64_t{1} << kGlobalIdBits;

}  // namespace decodelab
