// What happened to one element of memory, and whether barriers put it before a new access: exact happens-before
// (FastTrack, Flanagan and Freund 2009, doi:10.1145/1542476.1542490) with block barriers as epochs and a vector clock
// for the lanes of a warp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace decodelab::cuda_on_cpu {

constexpr unsigned kWarpLanes = 32;
using LaneClocks = std::array<std::uint32_t, kWarpLanes>;

/// An atomic access reads and writes; two of them do not race.
enum class AccessKind : std::uint8_t { read, write, atomic };

/// Blocks are numbered through all launches. 0 means that there was no access, 1 that the host made it.
constexpr std::uint32_t kNoBlock = 0;
constexpr std::uint32_t kHostBlock = 1;

/// One access: by which thread of which block, when, and from where in the code.
struct Stamp {
  std::uint32_t block = kNoBlock;
  std::uint32_t epoch = 0;  ///< Block barriers that were passed.
  std::uint32_t clock = 0;  ///< Of the thread: warp barriers that it passed, from 1.
  std::uint32_t code = 0;   ///< The address in the program, from its beginning.
  std::uint16_t thread = 0;
  bool atomic = false;
};

/// The thread that runs, and what it knows of the others of its warp.
struct Now {
  std::uint32_t block = 0;
  std::uint32_t first_block = 0;  ///< The first one of this launch.
  std::uint32_t epoch = 0;
  std::uint16_t thread = 0;
  const LaneClocks* seen =
      nullptr;  ///< The clocks of lanes whose accesses lie before now; the own clock at the own lane.
};

/// The last write of an element, and the reads since.
struct Cell {
  Stamp write;
  Stamp read;                    ///< The latest one.
  std::uint32_t lane_reads = 0;  ///< Where several lanes of one warp read in this epoch: 1 + the index of their clocks.
  bool read_by_warps = false;    ///< In this epoch, by more than one.
  bool read_by_blocks = false;   ///< In this launch, by another one than the latest.
};

enum class Conflict : std::uint8_t { none, with_read, with_write, unwritten };
struct Finding {
  Conflict conflict = Conflict::none;
  Stamp other;  ///< The access that conflicts.
};

/// Clocks of lanes that have read the same element; cleared when a block starts and at each block barrier.
using LaneReads = std::vector<LaneClocks>;

/// Adds an access to a cell and returns what is wrong with it. A shared cell belongs to one block: what earlier blocks
/// did to it is gone.
Finding note_access(Cell& cell, AccessKind kind, bool shared, const Now& now, std::uint32_t code,
                    LaneReads& lane_reads);

}  // namespace decodelab::cuda_on_cpu
