// How the ranks that share a model are started and talk: the setting of the slot `communicator`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace decodelab {

/// Where the other ranks run.
enum class RanksRun : std::uint8_t { threads, processes };

/// What ranks do with what each has computed.
enum class RanksExchange : std::uint8_t {
  over_memory,      ///< Exchange it in the memory of the host.
  between_devices,  ///< Exchange it between GPUs, one a rank.
  nothing,          ///< Go on with their own part, as if exchanging took no time: what they compute is wrong.
};

/// Says how many ranks share the model; the reference is one, which has all of it.
struct CommunicatorRule {
  std::int64_t ranks = 1;
  RanksRun run = RanksRun::threads;  ///< Where there are several.
  RanksExchange exchange = RanksExchange::over_memory;
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
  bool own_device = false;     ///< It has the device as many after the first one's as its number says.
  int memory_descriptor = -1;  ///< Of RankMemory, which children have too.
  /// The draft that this is a rank of, by the name of the plan's ProposerRule; empty: the model itself.
  std::optional<std::string> draft{};
  std::int64_t first_layers = 0;  ///< Above 0: of the model's own layers, so many guess.
};

/// Starts a rank in another process; the caller of an engine knows how.
using RankLauncher = std::function<std::unique_ptr<RankElsewhere>(const RankStart&)>;

}  // namespace decodelab
