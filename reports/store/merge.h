// Puts the runs of several stores into one, and unites the shards of one plan into one run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace decodelab {

/// What a merge did.
struct MergeReport {
  std::int64_t added = 0;      ///< Runs that the target did not have.
  std::int64_t united = 0;     ///< Runs of which the target got blocks or rows that it lacked.
  std::int64_t unchanged = 0;  ///< Runs of which it had everything.
  std::int64_t blocks = 0;     ///< Blocks that were added.
  /// What a person must know: shards that are still missing, and shards that stay apart. Each is a sentence.
  std::vector<std::string> notices;
};

/// Adds all runs of `sources` to `target`, which is created where it is not there; the sources are only read, older
/// schemas included.
///
/// A run that is there already, by its uuid, is completed: blocks, rows and traces that one side lacks come from the
/// other. Where both have a trace of an arm in a cell, the target keeps its own and a notice says so: traces carry no
/// date and are no part of a result. Shards of one plan become one run, those in the target itself included; a shard in
/// the target that is not finished is left alone, since its sweep may still be writing it. Shards measured on different
/// machines, with another build or other threads stay apart. All of it is one transaction. Merging again changes
/// nothing.
///
/// Throws std::invalid_argument, and leaves the target as it was, where two sources contradict each other (another
/// block in the same launch, block and cell; another fate or step count of a cell), where a source is the target, and
/// as Store's constructor does.
MergeReport merge_stores(const std::filesystem::path& target, const std::vector<std::filesystem::path>& sources);

}  // namespace decodelab
