// The rules of what lies before what.
#include "tests/cuda_on_cpu/happens_before.h"

namespace decodelab::cuda_on_cpu {
namespace {

unsigned warp_of(std::uint16_t thread) { return thread / kWarpLanes; }
unsigned lane_of(std::uint16_t thread) { return thread % kWarpLanes; }

/// Whether an access of another block of this launch, which nothing orders.
bool by_concurrent_block(const Stamp& stamp, const Now& now) {
  return stamp.block != now.block && stamp.block >= now.first_block;
}

bool before(const Stamp& stamp, bool shared, const Now& now) {
  if (stamp.block != now.block) {
    return shared || !by_concurrent_block(stamp, now);
  }
  if (stamp.thread == now.thread || stamp.epoch < now.epoch) {
    return true;
  }
  return warp_of(stamp.thread) == warp_of(now.thread) && stamp.clock <= (*now.seen)[lane_of(stamp.thread)];
}

bool written(const Cell& cell, bool shared, const Now& now) {
  return shared ? cell.write.block == now.block : cell.write.block != kNoBlock;
}

Stamp stamp_of(const Now& now, AccessKind kind, std::uint32_t code) {
  return {.block = now.block,
          .epoch = now.epoch,
          .clock = (*now.seen)[lane_of(now.thread)],
          .code = code,
          .thread = now.thread,
          .atomic = kind == AccessKind::atomic};
}

void note_read(Cell& cell, const Now& now, std::uint32_t code, LaneReads& lane_reads) {
  if (cell.read.block != now.block) {
    cell.read_by_blocks = by_concurrent_block(cell.read, now);
  }
  const bool same_epoch = cell.read.block == now.block && cell.read.epoch == now.epoch;
  if (!same_epoch) {
    cell.read_by_warps = false;
    cell.lane_reads = 0;
  } else if (warp_of(cell.read.thread) != warp_of(now.thread)) {
    cell.read_by_warps = true;
  } else if (cell.read.thread != now.thread && cell.lane_reads == 0) {
    lane_reads.push_back({});
    lane_reads.back()[lane_of(cell.read.thread)] = cell.read.clock;
    cell.lane_reads = static_cast<std::uint32_t>(lane_reads.size());
  }
  cell.read = stamp_of(now, AccessKind::read, code);
  if (cell.lane_reads != 0) {
    lane_reads[cell.lane_reads - 1][lane_of(now.thread)] = cell.read.clock;
  }
}

/// Finds a read that a write of now would race with.
Finding concurrent_read(const Cell& cell, bool shared, const Now& now, const LaneReads& lane_reads) {
  const Finding race{Conflict::with_read, cell.read};
  if (cell.read.block != now.block) {
    return !shared && by_concurrent_block(cell.read, now) ? race : Finding{};
  }
  if (!shared && cell.read_by_blocks) {
    return race;
  }
  if (cell.read.epoch < now.epoch) {
    return {};
  }
  if (cell.read_by_warps || warp_of(cell.read.thread) != warp_of(now.thread)) {
    return race;
  }
  if (cell.lane_reads == 0) {
    return before(cell.read, shared, now) ? Finding{} : race;
  }
  const LaneClocks& clocks = lane_reads[cell.lane_reads - 1];
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (lane != lane_of(now.thread) && clocks[lane] > (*now.seen)[lane]) {
      Finding found = race;
      found.other.thread = static_cast<std::uint16_t>(warp_of(now.thread) * kWarpLanes + lane);
      return found;
    }
  }
  return {};
}

}  // namespace

Finding note_access(Cell& cell, AccessKind kind, bool shared, const Now& now, std::uint32_t code,
                    LaneReads& lane_reads) {
  Finding finding;
  const bool both_atomic = kind == AccessKind::atomic && cell.write.atomic;
  if (!both_atomic && !before(cell.write, shared, now)) {
    finding = {Conflict::with_write, cell.write};
  } else if (kind != AccessKind::write && !written(cell, shared, now)) {
    finding.conflict = Conflict::unwritten;
  }
  if (kind == AccessKind::read) {
    note_read(cell, now, code, lane_reads);
    return finding;
  }
  if (finding.conflict == Conflict::none) {
    finding = concurrent_read(cell, shared, now, lane_reads);
  }
  cell = {.write = stamp_of(now, kind, code)};
  return finding;
}

}  // namespace decodelab::cuda_on_cpu
