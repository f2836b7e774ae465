// A rank of a model in a process of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plan/named_draft.h"
#include "bench/plan/sweep_plan.h"
#include "engine/ranks/communicator.h"

namespace decodelab {

/// What ranks in other processes are started with, besides their number.
struct RankProcessOptions {
  std::string checkpoint;
  std::string dtype;
  std::string device;
  std::string arm;                     ///< Without what it asks of rows.
  std::vector<std::int64_t> places{};  ///< Cores of all ranks together, one a thread; empty: threads are not bound.
  std::vector<NamedDraft> drafts{};    ///< With what is loaded of each, for those that ranks share.
};

/// What stands before the command of a rank, words with spaces between them, such as `srun --overlap --ntasks=1`: the
/// process runs on the same machine, and is no child of the first rank.
inline constexpr const char* kRanksByVariable = "DECODELAB_RANKS_BY";

/// Returns what starts this program's command `rank`. A rank that ends throws RankFailed where the first one
/// looks.
RankLauncher rank_processes(RankProcessOptions options);

/// Returns the same for an arm of a plan, by its label.
RankLauncher rank_processes(const LaunchPlan& plan, std::string_view label);

}  // namespace decodelab
