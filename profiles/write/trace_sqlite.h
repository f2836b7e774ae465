// Writes a trace as a SQLite file with the tables of Nsight Systems' export, for people who ask in SQL.
#pragma once

#include "profiles/trace/attribution.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

#include <filesystem>

namespace decodelab {

/// Makes the file at `path`, which must not be there. Engine spans and operators are NVTX push-pop ranges, with columns of ours behind
/// those of nsys. The account of gaps is empty for a broken trace, and QUALITY says why. Throws std::runtime_error where the file
/// cannot be written.
void write_trace_sqlite(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
                        const std::filesystem::path& path);

/// nsys packs the ids of a process and a thread into one number, 24 bits each; those that do not fit get free ones, and the table THREAD
/// has all of them as they are.
inline constexpr int kGlobalIdBits = 24;
inline constexpr std::int64_t kGlobalIdLimit = std::int64_t{1} << kGlobalIdBits;

}  // namespace decodelab
