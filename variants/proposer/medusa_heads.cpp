// Lets further heads of the model guess, each a token further ahead.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/made_once.h"
#include "engine/sequences/proposer.h"
#include "variants/proposer/medusa_file.h"
#include "variants/proposer/proposer_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "medusa-heads";
constexpr std::int64_t kDefaultTokens = 4;

/// Guesses from the states that the next tokens were chosen from: it keeps nothing of rows.
class MedusaProposer final : public Proposer {
 public:
  MedusaProposer(const ProposerOptions& options, std::shared_ptr<const std::vector<MedusaHead>> heads,
                 std::int64_t most)
      : rows_(options.rows),
        heads_(std::move(heads)),
        most_(std::min(most, static_cast<std::int64_t>(heads_->size()))),
        logits_of_(options.logits_of) {}

  void add(std::int64_t, std::span<const std::int64_t>) override {}
  void see(const at::Tensor& states) override { states_ = states; }

  std::vector<std::vector<std::int64_t>> propose(std::span<const std::int64_t> budgets) override {
    const std::int64_t most = std::min(most_, std::ranges::max(budgets));
    std::vector<std::vector<std::int64_t>> guesses(static_cast<std::size_t>(rows_));
    if (!states_.defined()) {
      return guesses;  // Nobody has seen what the last tokens were chosen from.
    }
    for (std::int64_t head = 0; head < most; ++head) {
      const at::Tensor best = logits(static_cast<std::size_t>(head)).argmax(1).to(at::kCPU);
      for (std::size_t row = 0; row < guesses.size(); ++row) {
        if (head < budgets[row]) {
          guesses[row].push_back(best.const_data_ptr<std::int64_t>()[row]);
        }
      }
    }
    return guesses;
  }

  void select(const std::vector<std::int64_t>& rows) override {
    rows_ = std::ssize(rows);
    states_ = at::Tensor();
  }
  void append(RowPart& other) override {
    rows_ += dynamic_cast<MedusaProposer&>(other).rows_;
    states_ = at::Tensor();
  }
  void truncate(std::int64_t, std::int64_t) override {}

 private:
  at::Tensor logits(std::size_t head) const {
    const MedusaHead& of = (*heads_)[head];
    at::Tensor state = states_;
    for (const MedusaHead::Block& block : of.blocks) {
      const auto bias = block.bias.defined() ? std::optional(block.bias) : std::nullopt;
      state = state + at::silu(at::linear(state, block.weight, bias));
    }
    return of.head.defined() ? at::linear(state, of.head) : logits_of_(state);
  }

  std::int64_t rows_;
  std::shared_ptr<const std::vector<MedusaHead>> heads_;
  std::int64_t most_;
  std::function<at::Tensor(const at::Tensor&)> logits_of_;
  at::Tensor states_;  ///< [B, d]; undefined where they are not known.
};

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t tokens = parameters.integer("tokens");
  const std::string& folder = parameters.word("folder");  // Copied into what is bound.
  const auto heads = std::make_shared<MadeOnce<const std::vector<MedusaHead>>>();
  plan.proposer.bind(kName, {.make =
                                 [=](const ProposerOptions& options) {
                                   const auto load = [&] {
                                     return std::make_shared<const std::vector<MedusaHead>>(
                                         load_medusa_heads(folder, {.hidden_size = options.config->hidden_size,
                                                                    .vocabulary_size = options.config->vocabulary_size,
                                                                    .dtype = options.dtype,
                                                                    .device = options.device}));
                                   };
                                   return std::make_unique<MedusaProposer>(options, heads->get(load), tokens);
                                 },
                             .from = GuessesFrom::model,
                             .sees_states = true,
                             .folder = folder});
}

std::string unsupported(const RunsOn& where) {
  if (where.config.encoder) {
    return "it guesses from the states of a decoder alone";
  }
  return where.plan->proposer.value().folder.empty() ? "it needs the folder of its heads: medusa-heads:folder=FOLDER"
                                                     : "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary = "Further heads of the model guess, each a token further ahead, from the state of the last token.",
    .source = "Medusa (Cai et al. 2024, arXiv:2401.10774), its chain of the likeliest tokens; "
              "text-generation-inference",
    .parameters = {guesses_parameter(kDefaultTokens),
                   {.name = "folder",
                    .help = "where config.json and medusa_lm_head.safetensors are",
                    .default_word = ""}},
    .expects = [](const CountedSteps& counted, const Parameters&) { return expected_rounds(counted, false); },
    .unsupported = unsupported,
    .conflict = [](const EnginePlan& plan) { return proposer_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
