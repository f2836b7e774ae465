// Writes a trace in the format that the name of its file asks for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

namespace decodelab {

enum class TraceFormat : std::uint8_t { perfetto, kineto_gzip, kineto, sqlite, summary };

/// An ending of file names and its format. Where several endings fit, the longest counts.
struct TraceEnding {
  std::string_view ending;
  TraceFormat format;
  const char* summary;
};
std::span<const TraceEnding> trace_endings();

/// Returns the format for the name of a file. Throws std::invalid_argument, which lists the endings, where the name has
/// none of them.
TraceFormat trace_format(const std::filesystem::path& path);

struct WriteOptions {
  /// More are refused: a viewer that shows a part of a trace shows something that did not happen.
  std::int64_t most_events = 4'000'000;
};

/// Writes a temporary file beside `path` and renames it, so that a file is complete or not there; an older file of that
/// name is replaced. Throws std::invalid_argument for an ending that is not known, and std::runtime_error where there
/// are more events than allowed or the file cannot be written.
void write_trace(const Trace& trace, const TraceQuality& quality, const std::filesystem::path& path,
                 const WriteOptions& options = {});

}  // namespace decodelab
