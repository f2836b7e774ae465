// Decorates products, so that no family and no variant knows of ranks.
#include "engine/layers/shared_layers.h"

#include <utility>

#include "engine/tensor.h"

namespace decodelab {
namespace {

class SummedLinear final : public Linear {
 public:
  SummedLinear(std::unique_ptr<Linear> part, Ranks& ranks) : part_(std::move(part)), ranks_(ranks) {}

  std::int64_t coded_bytes() const override { return part_->coded_bytes(); }
  at::Tensor dequantized() const override { return part_->dequantized(); }
  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    at::Tensor part = part_->forward(x, workspace);
    ranks_.sum(part);
    return part;
  }

 private:
  std::unique_ptr<Linear> part_;
  Ranks& ranks_;
};

class SummedMlp final : public Mlp {
 public:
  SummedMlp(std::unique_ptr<Mlp> part, Ranks& ranks) : part_(std::move(part)), ranks_(ranks) {}

  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    at::Tensor part = part_->forward(x, workspace);
    ranks_.sum(part);
    return part;
  }

 private:
  std::unique_ptr<Mlp> part_;
  Ranks& ranks_;
};

class HeadOfRanks final : public Linear {
 public:
  HeadOfRanks(std::unique_ptr<Linear> part, Ranks& ranks) : part_(std::move(part)), ranks_(ranks) {}

  std::int64_t coded_bytes() const override { return part_->coded_bytes(); }
  at::Tensor dequantized() const override { return part_->dequantized(); }
  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    return ranks_.head(x, [&](const at::Tensor& normed) { return part_->forward(normed, workspace); });
  }

 private:
  std::unique_ptr<Linear> part_;
  Ranks& ranks_;
};

}  // namespace

std::unique_ptr<Linear> summed_over_ranks(std::unique_ptr<Linear> part, Ranks& ranks) {
  return std::make_unique<SummedLinear>(std::move(part), ranks);
}
std::unique_ptr<Mlp> summed_over_ranks(std::unique_ptr<Mlp> part, Ranks& ranks) {
  return std::make_unique<SummedMlp>(std::move(part), ranks);
}
std::unique_ptr<Linear> head_of_ranks(std::unique_ptr<Linear> part, Ranks& ranks) {
  return std::make_unique<HeadOfRanks>(std::move(part), ranks);
}

}  // namespace decodelab
