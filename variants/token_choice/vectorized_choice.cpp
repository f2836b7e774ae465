// Chooses the tokens of all rows with one reduction and one read-back, sampled rows after one pass of each warper.
#include "variants/token_choice/vectorized_choice.h"

#include <optional>
#include <utility>

#include "base/select_rows.h"
#include "engine/kernels/elementwise/arg_max.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/workspace.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_history.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Rows of logits that are worth another thread.
constexpr std::int64_t kRowsOfATask = 4;

class VectorizedChoice final : public TokenChoice {
 public:
  VectorizedChoice(const ChoiceOptions& options, KeepTypical keep_typical)
      : rows_(options), device_(options.device), keep_typical_(std::move(keep_typical)) {
    prepare_all();
  }

  ChosenTokens choose(const ChoiceTask& task) override {
    if (task.rows == nullptr) {
      return choose(task, all_, nullptr);
    }
    const ChoiceRows::Part part = rows_.part(*task.rows);
    return choose(task, prepare(part.parameters, part.sampled), &part.draws);
  }

  void select(const std::vector<std::int64_t>& rows) override {
    rows_.select(rows);
    prepare_all();
  }
  void append(RowPart& other) override {
    rows_.append(std::move(dynamic_cast<VectorizedChoice&>(other).rows_));
    prepare_all();
  }

 private:
  /// What rows ask, on the device.
  struct Prepared {
    std::optional<BatchPenalty> penalty;
    std::optional<BatchWarpers> warpers;  ///< Of the sampled rows; none where all are greedy.
    std::optional<at::Tensor> some_rows;  ///< The sampled rows, int64, where others are greedy.
  };

  Prepared prepare(const std::vector<SamplingParameters>& parameters, const std::vector<std::int64_t>& sampled) const {
    Prepared prepared;
    if (std::ranges::any_of(parameters, &SamplingParameters::penalizes)) {
      prepared.penalty.emplace(parameters, device_);
    }
    if (!sampled.empty()) {
      prepared.warpers.emplace(select_rows(parameters, sampled), device_, keep_typical_);
    }
    if (!sampled.empty() && sampled.size() < parameters.size()) {
      prepared.some_rows = at::tensor(sampled, at::kLong).to(device_);
    }
    return prepared;
  }
  void prepare_all() { all_ = prepare(rows_.parameters(), rows_.sampled()); }

  /// `draws` names the rows of the generator that draw; null: all.
  ChosenTokens choose(const ChoiceTask& task, const Prepared& prepared, const std::vector<std::int64_t>* draws) {
    at::Tensor scores = task.logits;
    if (prepared.penalty) {
      const at::Tensor& seen = task.history->seen();
      scores = prepared.penalty->penalize(
          scores.to(at::kFloat),
          task.rows == nullptr ? seen : seen.index_select(0, at::tensor(*task.rows, at::kLong).to(seen.device())));
    }
    const auto draw = [&](const at::Tensor& of_rows) {
      const at::Tensor probabilities = at::softmax(prepared.warpers->warp(of_rows.to(at::kFloat)), 1);
      return draws == nullptr ? rows_.rng()->draw(probabilities) : rows_.rng()->draw(probabilities, *draws);
    };
    ChosenTokens chosen;
    if (!prepared.warpers || prepared.some_rows) {
      chosen.device = arg_max(scores, task.workspace);
    }
    if (prepared.some_rows) {
      chosen.device.index_copy_(0, *prepared.some_rows, draw(scores.index_select(0, *prepared.some_rows)));
    } else if (prepared.warpers) {
      chosen.device = draw(scores);
    }
    chosen.host = HostTokens(chosen.device);
    return chosen;
  }

  /// Returns the arg-max of each row, [B, 1] int64.
  static at::Tensor arg_max(const at::Tensor& scores, Workspace& workspace) {
    at::Tensor result = workspace.allocate({scores.size(0), 1}, scores.options().dtype(at::kLong));
    if (!scores.is_cpu()) {
      return at::argmax_out(result, scores, -1, /*keepdim=*/true);
    }
    // libtorch's reduction takes a millisecond for 16 rows of 49152 numbers, as long as reading 40 MB of weights.
    const ElementType dtype = element_type(scores.scalar_type());
    const CpuIsa isa = best_cpu_isa();
    auto* indices = result.mutable_data_ptr<std::int64_t>();
    at::parallel_for(0, scores.size(0), kRowsOfATask, [&](std::int64_t first, std::int64_t last) {
      arg_max_of_rows(scores.const_data_ptr(), scores.size(1), scores.stride(0), dtype, first, last, indices, isa);
    });
    return result;
  }

  ChoiceRows rows_;
  at::Device device_;
  KeepTypical keep_typical_;
  Prepared all_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_choice.bind("vectorized-choice", [](const ChoiceOptions& options) {
    return make_vectorized_choice(options, keep_typical_by_sorting);
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return expected_of_vectorized_choice(counted);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "vectorized-choice",
    .summary = "All rows are warped and choose their tokens together, with one copy to the host a step.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 2",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace

std::unique_ptr<TokenChoice> make_vectorized_choice(const ChoiceOptions& options, KeepTypical keep_typical) {
  return std::make_unique<VectorizedChoice>(options, std::move(keep_typical));
}

std::vector<Expectation> expected_of_vectorized_choice(const CountedSteps& counted) {
  if (counted.sampled) {
    // The generators call argmax too; but only the row-by-row choice stacks its warped rows.
    return {{"op.aten::stack", 0}};
  }
  // On a CPU our own kernel finds the arg-max. An operator that was not called has no counter.
  return {{"op.aten::argmax", counted.device == "cpu" ? 0 : counted.steps}};
}

}  // namespace decodelab
