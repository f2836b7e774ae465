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

/// Writes track events only, in the order of time: processes with their threads, "GPU n" with the lanes of its streams
/// and the ranges of steps, layers and stages, counters, and an arrow from each launch to what it launched. An instant
/// at the start says the verdict. Every column of every row is written, and equal traces give equal bytes. Throws
/// std::runtime_error where rows overlap beyond what lanes can hold.
void write_perfetto(const Trace& trace, const TraceQuality& quality, const ByteSink& sink);

/// Writes categories, argument names and "ac2g" arrows as kineto does (pytorch/kineto, output_json.cpp); every step is
/// a ProfilerStep#N of the main thread. Waits carry `wait_on_stream` instead of `stream`, since HolisticTraceAnalysis
/// would count a wait with a `stream` as busy. Replays that are one row have the category cuda_graph, so that they are
/// not counted as kernels. Columns that kineto lacks are written as arguments with names of our own.
void write_kineto_json(const Trace& trace, const TraceQuality& quality, const ByteSink& sink);

/// Creates the file at `path`, which must not exist yet. Writes engine spans and operators as NVTX push-pop ranges,
/// with columns of ours after those of nsys. For a broken trace the table of gaps is empty, and QUALITY says why.
/// Throws std::runtime_error where the file cannot be written.
void write_trace_sqlite(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
                        const std::filesystem::path& path);

/// nsys packs the ids of a process and a thread into one number, 24 bits each. Ids that do not fit are replaced by free
/// ones; the table THREAD holds all of them as they are.
inline constexpr int kGlobalIdBits = 24;
inline constexpr std::int64_t kGlobalIdLimit = std::int64_t{1} << kGlobalIdBits;

}  // namespace decodelab
