// The reference of the random numbers: a loop over the rows, each with a generator of its own.
#include "engine/sampling/rng.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

/// Mixes a seed so that its low half depends on both halves: libtorch's CPU generator reads the low half only.
/// Different seeds stay different.
std::uint64_t folded(std::uint64_t seed) { return seed ^ seed >> 32; }

class RowRng final : public Rng {
 public:
  explicit RowRng(const RngOptions& options) {
    for (const std::uint64_t seed : options.seeds) {
      generators_.push_back(at::globalContext().defaultGenerator(at::Device(options.device)).clone());
      generators_.back().set_current_seed(folded(seed));
    }
  }

  at::Tensor draw(const at::Tensor& probabilities) override {
    std::vector<std::int64_t> all(generators_.size());
    std::iota(all.begin(), all.end(), std::int64_t{0});
    return draw(probabilities, all);
  }

  at::Tensor draw(const at::Tensor& probabilities, const std::vector<std::int64_t>& rows) override {
    at::Tensor tokens = at::empty({probabilities.size(0), 1}, probabilities.options().dtype(at::kLong));
    for (std::size_t index = 0; index < rows.size(); ++index) {
      const auto line = static_cast<std::int64_t>(index);
      const at::Tensor mine = probabilities[line];
      at::Generator& generator = generators_.at(static_cast<std::size_t>(rows[index]));
      const at::Tensor exponential = at::empty_like(mine).exponential_(1, generator);
      tokens[line].copy_((mine / exponential).argmax());
      count_amount(Amount::random_draws, 1);
    }
    return tokens;
  }

  void select(const std::vector<std::int64_t>& rows) override {
    std::vector<at::Generator> kept;
    for (const std::int64_t row : rows) {
      // Cloned, since a row that is named twice would otherwise share its generator.
      kept.push_back(generators_.at(static_cast<std::size_t>(row)).clone());
    }
    generators_ = std::move(kept);
  }

  void append(Rng&& other) override {
    std::ranges::move(dynamic_cast<RowRng&>(other).generators_, std::back_inserter(generators_));
  }

 private:
  std::vector<at::Generator> generators_;
};

}  // namespace

std::unique_ptr<Rng> make_row_rng(const RngOptions& options) { return std::make_unique<RowRng>(options); }

}  // namespace decodelab
