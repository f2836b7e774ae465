// Which track of a viewer every row of a trace lies on, in which order, and where its two ends stand among those of its
// track.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiles/trace/trace.h"
#include "profiles/write/slices.h"

namespace decodelab {

enum class RowTable : std::uint8_t { span, api_call, operation, wait, overhead, step, range };

/// Packs a row of a table into Slice::item.
inline std::uint64_t item_of(RowTable table, std::size_t row) {
  return std::uint64_t{static_cast<std::uint8_t>(table)} << 56 | row;
}
inline RowTable table_of(std::uint64_t item) { return static_cast<RowTable>(item >> 56); }
inline std::size_t row_of(std::uint64_t item) { return item & ((std::uint64_t{1} << 56) - 1); }

/// What a device did for one step, layer or stage: from its first operation to its last one. Ranges are derived from
/// operations, so no importer reads them back.
struct DeviceRange {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::string name;
};

enum class TrackKind : std::uint8_t { process, thread, plain };

struct Track {
  std::uint64_t uuid = 0;    ///< From 1 on.
  std::uint64_t parent = 0;  ///< 0: none.
  TrackKind kind = TrackKind::plain;
  std::int64_t process = 0;  ///< Set for processes, threads and the tracks below them.
  std::int64_t thread = 0;
  std::string name;
  std::string description;  ///< "process 12 thread 34" for host tracks.
  std::int32_t rank = 0;    ///< Among the children of its parent.
  std::vector<Edge> edges;  ///< In the order in which they must be written.
};

struct Tracks {
  std::vector<Track> tracks;  ///< Parents before their children.
  std::vector<DeviceRange> ranges;
  std::uint64_t main_process = 0;  ///< The uuid of the track of TraceSession::process.
};

/// Returns the tracks of a trace with their edges. Throws std::runtime_error where rows overlap so much that no lanes
/// suffice.
Tracks make_tracks(const Trace& trace);

}  // namespace decodelab
