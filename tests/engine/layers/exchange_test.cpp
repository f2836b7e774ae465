// What ranks exchange of tensors, between threads that stand for GPUs.
#include "engine/ranks/exchange.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/rank_part.h"
#include "engine/ranks/rank_failed.h"
#include "engine/tensor.h"
#include "tests/engine/ranks/rank_threads.h"
#include "tests/engine/test_model.h"

namespace decodelab {
namespace {

using testing::in_rank_threads;
using testing::small_config;

/// Ranks of one process, whose operations begin when all of them have asked.
struct Group {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<at::Tensor>> asked;
  std::size_t arrived = 0;
  std::int64_t done = 0;
  bool aborted = false;
};

class ThreadCollective final : public Collective {
 public:
  ThreadCollective(std::shared_ptr<Group> group, std::int64_t rank)
      : group_(std::move(group)), rank_(static_cast<std::size_t>(rank)) {}

  void sum(const at::Tensor& part) override {
    meet({part}, [](auto& asked) {
      at::Tensor total = at::zeros_like(asked[0][0]);
      for (const auto& tensors : asked) {
        total.add_(tensors[0]);
      }
      for (const auto& tensors : asked) {
        tensors[0].copy_(total);
      }
    });
  }
  void broadcast(const at::Tensor& tensor) override {
    meet({tensor}, [](auto& asked) {
      for (std::size_t rank = 1; rank < asked.size(); ++rank) {
        asked[rank][0].copy_(asked[0][0]);
      }
    });
  }
  void send(const at::Tensor& part) override { meet({part}, deliver); }
  void receive(const std::vector<at::Tensor>& parts) override { meet(parts, deliver); }
  void wait() override {}
  void abort() override {
    const std::lock_guard lock(group_->mutex);
    group_->aborted = true;
    group_->changed.notify_all();
  }

 private:
  using Asked = std::vector<std::vector<at::Tensor>>;
  static void deliver(Asked& asked) {
    for (std::size_t rank = 1; rank < asked.size(); ++rank) {
      asked[0][rank - 1].copy_(asked[rank][0]);
    }
  }

  void meet(std::vector<at::Tensor> tensors, const std::function<void(Asked&)>& finish) {
    std::unique_lock lock(group_->mutex);
    group_->asked[rank_] = std::move(tensors);
    const std::int64_t before = group_->done;
    if (++group_->arrived == group_->asked.size()) {
      finish(group_->asked);
      group_->arrived = 0;
      ++group_->done;
      group_->changed.notify_all();
    }
    group_->changed.wait(lock, [&] { return group_->done != before || group_->aborted; });
  }

  std::shared_ptr<Group> group_;
  std::size_t rank_;
};

Collectives collectives_of(const std::shared_ptr<Group>& group) {
  return {.new_id = [] { return CollectiveId{std::byte{7}, std::byte{9}}; },
          .join = [group](const CollectiveId& id, std::int64_t rank, std::int64_t ranks, const std::string& device,
                          const std::function<void()>& look) -> std::unique_ptr<Collective> {
            look();
            EXPECT_EQ(id[1], std::byte{9}) << "every rank has the name that the first one gave";
            EXPECT_EQ(device, "cpu");
            const std::lock_guard lock(group->mutex);
            group->asked.resize(static_cast<std::size_t>(ranks));
            return std::make_unique<ThreadCollective>(group, rank);
          }};
}

void expect_sums_and_logits(const CommunicatorRule& rule, const Collectives& collectives) {
  const ModelConfig config = small_config();
  const at::Tensor head = at::randn({config.vocabulary_size, config.hidden_size});
  const at::Tensor normed = at::randn({3, config.hidden_size});
  in_rank_threads(rule.ranks, [&](RankMemory& memory) {
    const c10::InferenceMode inference;
    const std::unique_ptr<Exchange> exchange = make_exchange(rule, memory, config, collectives);
    for (int repetition = 0; repetition < 3; ++repetition) {
      const at::Tensor part = at::full({2, 5}, static_cast<double>(memory.rank() + 1));
      exchange->sum(part);
      EXPECT_TRUE(part.eq(static_cast<double>(rule.ranks * (rule.ranks + 1) / 2)).all().item<bool>());
      const at::Tensor fed = memory.rank() == 0 ? normed.clone() : at::zeros_like(normed);
      const IndexRange rows = head_rows(config, {.rank = memory.rank(), .ranks = memory.ranks()});
      const at::Tensor logits = exchange->head(
          fed, [&](const at::Tensor& got) { return at::mm(got, head.narrow(0, rows.first, rows.count).t()); });
      if (memory.rank() == 0) {
        EXPECT_TRUE(at::allclose(logits, at::mm(normed, head.t()), 1e-4, 1e-4));
      } else {
        EXPECT_EQ(logits.numel(), 0);
      }
    }
  });
}

TEST(RankExchange, OverMemoryAndBetweenDevicesGiveTheSame) {
  for (const std::int64_t ranks : {2, 4}) {
    const auto group = std::make_shared<Group>();
    const Collectives collectives = collectives_of(group);
    expect_sums_and_logits({.ranks = ranks, .exchange = RanksExchange::over_memory}, collectives);
    EXPECT_TRUE(group->asked.empty()) << "memory needs no devices";
    expect_sums_and_logits({.ranks = ranks, .exchange = RanksExchange::between_devices}, collectives);
    EXPECT_GT(group->done, 0);
  }
}

TEST(RankExchange, ARankThatEndsWhileADeviceWaitsForItIsNoHang) {
  const auto group = std::make_shared<Group>();
  const Collectives collectives = collectives_of(group);
  RankMemory first(2);
  RankMemory second(first, 1);
  std::thread other([&] {
    CollectiveId id{};
    second.broadcast(id);  // It joins, and is never heard of again.
  });
  std::atomic<int> looks = 0;
  first.set_look([&looks] {
    if (++looks > 3) {
      throw RankFailed("the process of rank 1 of 2 was killed by signal 9");
    }
  });
  const c10::InferenceMode inference;
  {
    const std::unique_ptr<Exchange> exchange =
        make_exchange({.ranks = 2, .exchange = RanksExchange::between_devices}, first, small_config(), collectives);
    const at::Tensor part = at::ones({4});
    exchange->sum(part);  // A device would wait now, and the host with it.
    try {
      exchange->sum(part);
      FAIL() << "nobody was there to sum with";
    } catch (const RankFailed& error) {
      EXPECT_STREQ(error.what(), "the process of rank 1 of 2 was killed by signal 9");
    }
  }
  other.join();
  EXPECT_TRUE(group->aborted);
}

TEST(RankExchange, OfNothingIsWrongAndTakesNoTime) {
  RankMemory memory(2);  // Nobody else is there.
  const std::unique_ptr<Exchange> exchange =
      make_exchange({.ranks = 2, .exchange = RanksExchange::nothing}, memory, small_config());
  const c10::InferenceMode inference;
  const at::Tensor part = at::ones({4});
  exchange->sum(part);
  EXPECT_TRUE(part.eq(1).all().item<bool>());
  const at::Tensor logits = exchange->head(at::ones({2, 3}), [](const at::Tensor&) { return at::ones({2, 5}); });
  EXPECT_EQ(logits.size(1), small_config().vocabulary_size);
  EXPECT_EQ(logits.sum().item<float>(), 10);
}

}  // namespace
}  // namespace decodelab
