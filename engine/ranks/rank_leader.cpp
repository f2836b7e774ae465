// Sends orders, and exchanges what layers compute.
#include "engine/ranks/rank_leader.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "engine/checkpoint/rank_part.h"
#include "engine/kernels/scalar_type.h"
#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {

class KeptByRanks {
 public:
  KeptByRanks(std::shared_ptr<RankLeader> leader, std::int64_t generation, std::int64_t number)
      : leader_(std::move(leader)), generation_(generation), number_(number) {}
  ~KeptByRanks() { leader_->last_order(generation_, RankOrder::drop, number_); }
  KeptByRanks(const KeptByRanks&) = delete;
  KeptByRanks& operator=(const KeptByRanks&) = delete;

  std::int64_t generation() const { return generation_; }
  std::int64_t number() const { return number_; }

 private:
  std::shared_ptr<RankLeader> leader_;
  std::int64_t generation_;
  std::int64_t number_;
};

RankLeader::RankLeader(const ModelConfig& config, const CommunicatorRule& rule, StartRank start)
    : config_(config), rule_(rule), start_(std::move(start)) {
  begin();
}

RankLeader::~RankLeader() { last_order(generation_, RankOrder::end, 0); }

void RankLeader::begin() {
  if (generation_ == kMostStarts) {
    throw RankFailed(fmt::format("ranks of the model have failed {} times, and are given up", kMostStarts));
  }
  end_others();
  memory_ = std::make_unique<RankMemory>(rule_.ranks);
  exchange_ = make_exchange(rule_, *memory_, config_);
  ++generation_;
  with_ranks([&] {
    for (std::int64_t rank = 1; rank < rule_.ranks; ++rank) {
      others_.push_back(start_(*memory_, rank));
    }
    memory_->set_look([this] {
      for (const std::unique_ptr<RankElsewhere>& other : others_) {
        other->look();
      }
    });
    memory_->meet();
  });
}

void RankLeader::end_others() noexcept {
  exchange_.reset();
  others_.clear();
}

template <typename Call>
void RankLeader::with_ranks(Call&& call) {
  if (memory_ == nullptr) {
    throw RankFailed("ranks of the model have failed before");
  }
  try {
    call();
  } catch (const std::exception& error) {
    memory_->fail(error.what());  // So that none of them waits for another.
    end_others();
    memory_.reset();
    throw;
  }
}

void RankLeader::sum(const at::Tensor& part) {
  with_ranks([&] { exchange_->sum(part); });
}

at::Tensor RankLeader::head(const at::Tensor& normed, const std::function<at::Tensor(const at::Tensor&)>& part_of) {
  at::Tensor logits;
  with_ranks([&] {
    memory_->send(std::vector{static_cast<std::int64_t>(RankOrder::head), std::int64_t{0}, normed.size(0)});
    logits = exchange_->head(normed.contiguous(), part_of);
  });
  return logits;
}

void RankLeader::record() { order(generation_, RankOrder::record, 1, {}); }

std::vector<RankRecord> RankLeader::recorded() {
  order(generation_, RankOrder::record, 0, {});
  std::vector<RankRecord> records;
  with_ranks([&] {
    memory_->settle();
    for (std::int64_t rank = 1; rank < rule_.ranks; ++rank) {
      records.push_back(read_log(memory_->log(rank), rank));
    }
  });
  return records;
}

std::unique_ptr<RankSession> RankLeader::open(std::int64_t rows, std::int64_t max_tokens) {
  if (memory_ == nullptr) {
    begin();
  }
  auto session = std::make_unique<RankSession>(shared_from_this(), generation_, ++numbered_);
  order(generation_, RankOrder::open, numbered_, std::vector{rows, max_tokens});
  return session;
}

void RankLeader::order(std::int64_t generation, RankOrder kind, std::int64_t number,
                       std::span<const std::int64_t> numbers) {
  if (generation != generation_) {
    throw RankFailed("ranks of the model have failed since this session began");
  }
  std::vector<std::int64_t> order{static_cast<std::int64_t>(kind), number};
  order.insert(order.end(), numbers.begin(), numbers.end());
  with_ranks([&] { memory_->send(order); });
}

void RankLeader::last_order(std::int64_t generation, RankOrder kind, std::int64_t number) noexcept {
  if (memory_ == nullptr || generation != generation_) {
    return;
  }
  try {
    order(generation, kind, number, {});
  } catch (const std::exception&) {
    end_others();  // Who has failed holds nothing any more.
  }
}

RankSession::~RankSession() { leader_->last_order(generation_, RankOrder::close, number_); }

void RankSession::order(RankOrder kind, std::span<const std::int64_t> numbers) {
  leader_->order(generation_, kind, number_, numbers);
}

void RankSession::feed(std::span<const std::vector<std::int64_t>> tokens) {
  order(RankOrder::feed, tokens_to_numbers(tokens));
}
void RankSession::step(std::span<const std::int64_t> token_ids) { order(RankOrder::step, token_ids); }
void RankSession::pass(std::span<const std::vector<std::int64_t>> tokens) {
  order(RankOrder::pass, tokens_to_numbers(tokens));
}
void RankSession::fill_random(std::int64_t length, std::uint64_t seed, std::int64_t decoder_tokens) {
  order(RankOrder::fill_random, std::vector{length, static_cast<std::int64_t>(seed), decoder_tokens});
}

std::shared_ptr<const KeptByRanks> RankSession::keep() {
  auto kept = std::make_shared<const KeptByRanks>(leader_, generation_, ++leader_->numbered_);
  order(RankOrder::keep, std::vector{kept->number()});
  return kept;
}

void RankSession::fill(const KeptByRanks& kept) {
  if (kept.generation() != generation_) {
    throw RankFailed("ranks of the model have failed since these keys and values were kept");
  }
  order(RankOrder::fill, std::vector{kept.number()});
}

void RankSession::shrink(std::int64_t length) { order(RankOrder::shrink, std::vector{length}); }
void RankSession::select(const std::vector<std::int64_t>& rows) { order(RankOrder::select, rows); }
void RankSession::append(RowPart& other) {
  order(RankOrder::append, std::vector{dynamic_cast<RankSession&>(other).number_});
}
void RankSession::truncate(std::int64_t row, std::int64_t length) {
  order(RankOrder::truncate, std::vector{row, length});
}

}  // namespace decodelab
