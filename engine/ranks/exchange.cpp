// Hands tensors to the memory that ranks share, or to the collective operations of GPUs.
#include "engine/ranks/exchange.h"

#include <span>
#include <stdexcept>
#include <vector>

#include "engine/kernels/scalar_type.h"
#include "engine/ranks/rank_watch.h"
#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  if (!tensor.is_contiguous() || !tensor.is_cpu()) {
    throw std::logic_error("ranks exchange contiguous tensors in the memory of a CPU");
  }
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

/// Over the memory that ranks share.
class MemoryExchange final : public Exchange {
 public:
  using Exchange::Exchange;

 private:
  void add(const at::Tensor& part) override { memory().sum(bytes_of(part), element_type(part.scalar_type())); }
  void send(const at::Tensor& normed) override { memory().broadcast(bytes_of(normed)); }

  at::Tensor collect(const at::Tensor& part) override {
    std::vector<std::size_t> firsts;
    std::vector<std::size_t> counts;
    for (std::int64_t rank = 0; rank < memory().ranks(); ++rank) {
      firsts.push_back(static_cast<std::size_t>(columns(rank).first) * part.itemsize());
      counts.push_back(static_cast<std::size_t>(columns(rank).count) * part.itemsize());
    }
    at::Tensor logits = at::empty({part.size(0), first() ? vocabulary() : 0}, part.options());
    memory().gather(bytes_of(part), firsts, counts, first() ? bytes_of(logits) : std::span<std::byte>());
    return logits;
  }
};

/// Goes on as if exchanging took no time.
class NoExchange final : public Exchange {
 public:
  using Exchange::Exchange;

 private:
  void add(const at::Tensor& /*part*/) override {}
  void send(const at::Tensor& /*normed*/) override {}
  at::Tensor collect(const at::Tensor& part) override {
    return first() ? at::constant_pad_nd(part, {0, vocabulary() - part.size(1)})
                   : at::empty({part.size(0), 0}, part.options());
  }
};

/// Between GPUs. The ranks meet at the first exchange, where each has its device.
class DeviceExchange final : public Exchange {
 public:
  DeviceExchange(RankMemory& memory, const ModelConfig& config, const Collectives& collectives)
      : Exchange(memory, config), collectives_(collectives) {}
  ~DeviceExchange() override {
    watch_.reset();
    if (collective_ != nullptr && memory().failed()) {
      collective_->abort();  // Nobody is left to end together with.
    }
  }
  DeviceExchange(const DeviceExchange&) = delete;
  DeviceExchange& operator=(const DeviceExchange&) = delete;

 private:
  Collective& met(const at::Tensor& tensor) {
    if (collective_ == nullptr) {
      CollectiveId id{};
      if (first()) {
        id = collectives_.new_id();
      }
      memory().broadcast(id);
      collective_ =
          collectives_.join(id, memory().rank(), memory().ranks(), tensor.device().str(), [this] { memory().look(); });
      watch_ = std::make_unique<RankWatch>([this] { memory().look(); },
                                           [this](const std::string& why) {
                                             memory().fail(why);
                                             collective_->abort();
                                           });
    }
    memory().check();
    return *collective_;
  }

  void add(const at::Tensor& part) override { met(part).sum(part); }
  void send(const at::Tensor& normed) override { met(normed).broadcast(normed); }

  at::Tensor collect(const at::Tensor& part) override {
    Collective& collective = met(part);
    if (!first()) {
      collective.send(part);
      return at::empty({part.size(0), 0}, part.options());
    }
    std::vector<at::Tensor> parts{part};
    for (std::int64_t rank = 1; rank < memory().ranks(); ++rank) {
      parts.push_back(at::empty({part.size(0), columns(rank).count}, part.options()));
    }
    collective.receive({parts.begin() + 1, parts.end()});
    at::Tensor logits = at::cat(parts, 1);
    // What a failed rank left undone would be read as logits.
    collective.wait();
    memory().check();
    return logits;
  }

  const Collectives& collectives_;
  std::unique_ptr<Collective> collective_{};
  std::unique_ptr<RankWatch> watch_{};
};

}  // namespace

void Exchange::sum(const at::Tensor& part) {
  const Range range(Stage::all_reduce);
  count_amount(Amount::all_reduces, 1);
  count_amount(Amount::all_reduced_bytes, static_cast<std::int64_t>(part.nbytes()));
  add(part);
}

at::Tensor Exchange::head(const at::Tensor& normed, const std::function<at::Tensor(const at::Tensor&)>& part_of) {
  send(normed);
  const at::Tensor part = part_of(normed).contiguous();
  const Range range(Stage::all_reduce);
  return collect(part);
}

IndexRange Exchange::columns(std::int64_t rank) const {
  return head_rows(config_, {.rank = rank, .ranks = memory_.ranks()});
}

std::unique_ptr<Exchange> make_exchange(const CommunicatorRule& rule, RankMemory& memory, const ModelConfig& config,
                                        const Collectives& collectives) {
  switch (rule.exchange) {
    case RanksExchange::over_memory: return std::make_unique<MemoryExchange>(memory, config);
    case RanksExchange::nothing: return std::make_unique<NoExchange>(memory, config);
    case RanksExchange::between_devices: break;
  }
  return std::make_unique<DeviceExchange>(memory, config, collectives);
}

}  // namespace decodelab
