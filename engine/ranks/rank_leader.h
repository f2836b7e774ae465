// The first rank's side: it starts the others, has them follow its sessions, and gets their parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/layers/ranks.h"
#include "engine/layers/row_part.h"
#include "engine/ranks/communicator.h"
#include "engine/ranks/exchange.h"
#include "engine/ranks/rank_memory.h"
#include "engine/ranks/rank_orders.h"

namespace decodelab {

/// Starts a rank on this side of `memory`, in a thread or in a process.
using StartRank = std::function<std::unique_ptr<RankElsewhere>(const RankMemory& memory, std::int64_t rank)>;

/// Keys and values that the other ranks have kept; they are dropped with this object.
class KeptByRanks;
class RankSession;

/// The first of the ranks that share a model. The others have a session for each of this rank's, and run the same
/// layers on the same tokens; what tokens say is chosen here alone. Where a rank has failed or ended, every call throws
/// RankFailed, and the next session starts all of them anew. Used by one thread at a time.
class RankLeader final : public Ranks, public std::enable_shared_from_this<RankLeader> {
 public:
  /// Starts the other ranks. `config` is that of the whole model.
  RankLeader(const ModelConfig& config, const CommunicatorRule& rule, StartRank start);
  ~RankLeader() override;
  RankLeader(const RankLeader&) = delete;
  RankLeader& operator=(const RankLeader&) = delete;

  void sum(const at::Tensor& part) override;
  at::Tensor head(const at::Tensor& normed, const std::function<at::Tensor(const at::Tensor&)>& part_of) override;

  /// Has the other ranks note what they go through from now on.
  void record();
  /// Ends that, and returns what each has noted.
  std::vector<RankRecord> recorded();

  /// Has the other ranks make a session. Starts them again where they have failed, at most kMostStarts times.
  std::unique_ptr<RankSession> open(std::int64_t rows, std::int64_t max_tokens);

 private:
  friend class RankSession;
  friend class KeptByRanks;
  static constexpr int kMostStarts = 3;

  void begin();
  /// Sends an order; `generation` is that of the session or of what was kept.
  void order(std::int64_t generation, RankOrder kind, std::int64_t number, std::span<const std::int64_t> numbers);
  /// Does it where the ranks are the ones that know the number; throws nothing.
  void last_order(std::int64_t generation, RankOrder kind, std::int64_t number) noexcept;
  /// Runs `call`; where it throws RankFailed, the ranks are ended.
  template <typename Call>
  void with_ranks(Call&& call);
  /// Ends them, after why they should was said to all.
  void end_others() noexcept;

  ModelConfig config_;
  CommunicatorRule rule_;
  StartRank start_;
  std::unique_ptr<RankMemory> memory_;                  ///< Null where the ranks have ended.
  std::vector<std::unique_ptr<RankElsewhere>> others_;  ///< They end before the memory does.
  std::unique_ptr<Exchange> exchange_;                  ///< It may look after the others, and ends before them.
  std::int64_t generation_ = 0;                         ///< How often they were started.
  std::int64_t numbered_ = 0;                           ///< Sessions, and what was kept.
};

/// What the other ranks hold of one session. The functions do what those of Session do.
class RankSession final : public RowPart {
 public:
  RankSession(std::shared_ptr<RankLeader> leader, std::int64_t generation, std::int64_t number)
      : leader_(std::move(leader)), generation_(generation), number_(number) {}
  ~RankSession() override;
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  void feed(std::span<const std::vector<std::int64_t>> tokens);
  void step(std::span<const std::int64_t> token_ids);
  void pass(std::span<const std::vector<std::int64_t>> tokens);
  void fill_random(std::int64_t length, std::uint64_t seed, std::int64_t decoder_tokens);
  std::shared_ptr<const KeptByRanks> keep();
  void fill(const KeptByRanks& kept);
  /// Cuts all rows to `length` and gives back memory.
  void shrink(std::int64_t length);

  void select(const std::vector<std::int64_t>& rows) override;
  void append(RowPart& other) override;
  void truncate(std::int64_t row, std::int64_t length) override;

 private:
  void order(RankOrder kind, std::span<const std::int64_t> numbers = {});

  std::shared_ptr<RankLeader> leader_;
  std::int64_t generation_;
  std::int64_t number_;
};

}  // namespace decodelab
