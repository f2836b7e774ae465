// Draws each row's tokens from a counter-based generator keyed by the row's seed, its step and the token.
#include <algorithm>
#include <stdexcept>

#include "base/round_up.h"
#include "engine/kernels/device_element.h"
#include "engine/sampling/rng.h"
#include "engine/tensor.h"
#include "profiles/range.h"
#include "variants/registry.h"
#include "variants/rng/philox_race.cuh"
#include "variants/rng/philox_race.h"

namespace decodelab {
namespace {

/// Tokens per task of a thread; a row has several tasks, so that even one row runs on several cores.
constexpr std::int64_t kTaskTokens = 32 * kRaceChunk;

class PhiloxRng final : public Rng {
 public:
  explicit PhiloxRng(const RngOptions& options) {
    const auto rows = static_cast<std::int64_t>(options.seeds.size());
    at::Tensor seeds = at::empty({rows}, at::kLong);
    std::ranges::transform(options.seeds, seeds.mutable_data_ptr<std::int64_t>(),
                           [](std::uint64_t seed) { return static_cast<std::int64_t>(seed); });
    seeds_ = seeds.to(at::Device(options.device));
    steps_ = at::zeros_like(seeds_);
  }

  at::Tensor draw(const at::Tensor& probabilities) override {
    at::Tensor tokens = at::empty({probabilities.size(0), 1}, probabilities.options().dtype(at::kLong));
    const PhiloxRace race{.probabilities = probabilities.const_data_ptr<float>(),
                          .rows = probabilities.size(0),
                          .vocabulary_size = probabilities.size(1),
                          .seeds = seeds_.const_data_ptr<std::int64_t>(),
                          .steps = steps_.mutable_data_ptr<std::int64_t>(),
                          .tokens = tokens.mutable_data_ptr<std::int64_t>()};
    count_amount(Amount::random_draws, 1);
    if (probabilities.is_cpu()) {
      run(race);
      return tokens;
    }
#ifdef DECODELAB_HAS_CUDA
    on_stream_of(probabilities, [&](CUstream_st* stream) { launch_philox_race(race, stream); });
    return tokens;
#else
    throw std::invalid_argument("philox-rng on a GPU needs a build with CUDA");
#endif
  }

  at::Tensor draw(const at::Tensor& probabilities, const std::vector<std::int64_t>& rows) override {
    PhiloxRng some = *this;
    some.select(rows);
    at::Tensor tokens = some.draw(probabilities);
    steps_.index_copy_(0, at::tensor(rows, at::kLong).to(steps_.device()), some.steps_);
    return tokens;
  }

  void select(const std::vector<std::int64_t>& rows) override {
    const at::Tensor index = at::tensor(rows, at::kLong).to(seeds_.device());
    seeds_ = seeds_.index_select(0, index);
    steps_ = steps_.index_select(0, index);
  }

  void append(Rng&& other) override {
    const auto& there = dynamic_cast<const PhiloxRng&>(other);
    seeds_ = at::cat({seeds_, there.seeds_});
    steps_ = at::cat({steps_, there.steps_});
  }

 private:
  static void run(const PhiloxRace& race) {
    const std::int64_t tasks = divided_up(race.vocabulary_size, kTaskTokens);
    std::vector<std::uint64_t> best(static_cast<std::size_t>(race.rows * tasks));
    at::parallel_for(0, race.rows * tasks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t row = task / tasks;
        const std::int64_t first = task % tasks * kTaskTokens;
        best[static_cast<std::size_t>(task)] =
            race_on_cpu(race.probabilities + row * race.vocabulary_size, first,
                        std::min(first + kTaskTokens, race.vocabulary_size), race.seeds[row], race.steps[row]);
      }
    });
    for (std::int64_t row = 0; row < race.rows; ++row) {
      const auto first = best.begin() + row * tasks;
      race.tokens[row] = race_winner(*std::max_element(first, first + tasks));
      ++race.steps[row];
    }
  }

  at::Tensor seeds_;  ///< [S] int64 on the device, like the steps: a draw reads no host data.
  at::Tensor steps_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.rng.bind("philox-rng", [](const RngOptions& options) { return std::make_unique<PhiloxRng>(options); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (!counted.sampled) {
    return {};
  }
  return {{"random_draws", counted.steps}, {"op.aten::exponential_", 0}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "philox-rng",
    .summary = "One kernel draws for all sampled rows; a row's tokens depend on its seed only.",
    .source = "Salmon et al. 2011 (doi:10.1145/2063384.2063405), for what the SantaCoder study's step 6 gives up",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
