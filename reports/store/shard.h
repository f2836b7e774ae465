// Shards: the parts of one plan that are measured apart, and how to tell that runs are parts of the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "reports/store/record.h"

namespace decodelab {

/// Part `index` of `count`, from 1: the cells whose place in the plan leaves the remainder index - 1 when divided by
/// count, with all their arms.
struct Shard {
  std::int64_t index = 1;
  std::int64_t count = 1;

  /// Returns whether the cell at this place of the plan, from 0, belongs to the shard.
  bool has(std::size_t cell) const;
  bool operator==(const Shard&) const = default;
};

/// Returns the shard as `2/3`.
std::string to_string(const Shard& shard);
/// Throws std::invalid_argument for a text that is no `i/n` with 1 <= i <= n.
Shard parse_shard(std::string_view text);

/// Returns the shard that a run measures, as its plan says; none for a run of all cells.
std::optional<Shard> shard_of(const RunRecord& run);

/// Returns the name of that shard; empty for a run of all cells.
std::string shard_name(const RunRecord& run);

/// The shards that a merged run was put together from, with the time at which each ended; 0 while one is not finished.
using MergedShards = std::map<std::string, std::int64_t>;
/// Returns the shards of a merged run; empty for a run that was not merged from shards.
MergedShards merged_shards(const RunRecord& run);
/// Returns whether every one of the plan's cells belongs to a shard that ended.
bool covers(const MergedShards& shards, std::size_t cells);

/// Turns the run of a shard into a merged run that has only that shard so far; leaves any other run as it is.
///
/// Its uuid follows from the plan and from where it was measured (threads, machine, build), so that shards that may be
/// united have the same, whatever the order in which they are merged. The run counts as ended when every cell belongs
/// to a shard that ended.
void make_merged(RunData& data);
/// Puts `shards` into the plan of a merged run and works out when it ended.
void set_merged_shards(RunRecord& run, const MergedShards& shards, std::size_t cells);

/// Returns 32 hexadecimal digits that are equal for runs of the same plan: name, seed, launches, blocks, model, cells
/// and arms.
///
/// Which shard it is, where the checkpoint lies and how many threads the machine has are not part of the plan.
std::string plan_hash(const RunData& data);

}  // namespace decodelab
