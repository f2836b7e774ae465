// Chooses the tokens of all rows with one reduction and one read-back, sampled rows after one pass of each warper.
#include "variants/token_choice/vectorized_choice.h"

#include <optional>
#include <utility>

#include "base/select_rows.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/highest_logits.h"
#include "engine/sampling/token_history.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

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
      chosen.device = highest_logits(scores, task.workspace);
    }
    if (prepared.some_rows) {
      chosen.device.index_copy_(0, *prepared.some_rows, draw(scores.index_select(0, *prepared.some_rows)));
    } else if (prepared.warpers) {
      chosen.device = draw(scores);
    }
    chosen.host = HostTokens(chosen.device);
    return chosen;
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
