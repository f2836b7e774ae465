// How the ranks that share a model are started and talk: the setting of the slot `communicator`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace decodelab {

/// Where the other ranks run.
enum class RanksRun : std::uint8_t { threads, processes };

/// Says how many ranks share the model; the reference is one, which has all of it.
struct CommunicatorRule {
  std::int64_t ranks = 1;
  RanksRun run = RanksRun::threads;  ///< Where there are several.
  /// Without it each goes on with its own part, as if exchanging took no time: what it computes is wrong.
  bool exchanges = true;
};

/// A rank that runs elsewhere, and ends with this object.
class RankElsewhere {
 public:
  virtual ~RankElsewhere() = default;
  /// Throws RankFailed where it has ended.
  virtual void look() = 0;
};

/// What a rank in another process is started with.
struct RankStart {
  std::int64_t rank = 1;
  std::int64_t ranks = 2;
  std::int64_t threads = 1;    ///< That it may use.
  int memory_descriptor = -1;  ///< Of RankMemory, which children have too.
};

/// Starts a rank in another process; the caller of an engine knows how.
using RankLauncher = std::function<std::unique_ptr<RankElsewhere>(const RankStart&)>;

}  // namespace decodelab
