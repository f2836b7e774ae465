// Writes and reads everything in a trace that is not one of its rows, as one JSON text that every format carries.
#pragma once

#include <string>
#include <string_view>

#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// The key under which formats keep the text.
inline constexpr const char* kSessionKey = "decodelab.session";

/// Returns session, steps, graph nodes and verdict. `time_offset_ns` is what a format added to every time, so that none
/// lies below 0. Bytes that are not UTF-8 become replacement characters.
std::string session_text(const Trace& trace, const TraceQuality& quality, std::int64_t time_offset_ns);

/// Fills session, steps and nodes of `events`. What `events.session` held before is lost. Throws
/// std::runtime_error where the text is not one of session_text().
void read_session_text(std::string_view text, TraceEvents& events);

}  // namespace decodelab
