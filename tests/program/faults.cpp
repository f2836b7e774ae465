// Mistakes as variants: linked into the program as decodelab_faulty, to show that a gate names them.
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_choice.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

using Mistake = void (*)(const at::Tensor& logits);

/// The reference's choice, after a mistake that changes no token.
class FaultyChoice final : public TokenChoice {
 public:
  FaultyChoice(Mistake mistake, const ChoiceOptions& options)
      : mistake_(mistake), right_(make_row_by_row_choice(options)) {}
  ChosenTokens choose(const ChoiceTask& task) override {
    mistake_(task.logits);
    return right_->choose(task);
  }
  void select(const std::vector<std::int64_t>& rows) override { right_->select(rows); }
  void append(RowPart& other) override { right_->append(*dynamic_cast<FaultyChoice&>(other).right_); }

 private:
  Mistake mistake_;
  std::unique_ptr<TokenChoice> right_;
};

void allocate(const at::Tensor& logits) { at::empty({1}, logits.options()); }

void concatenate(const at::Tensor& logits) {
  const at::Tensor one = logits.select(1, 0);
  at::cat({one, one});
}

Variant faulty(const std::string& name, const std::string& summary, Mistake mistake) {
  return {.name = name,
          .summary = summary,
          .source = "tests/program/faults.cpp",
          .parameters = {},
          .expects = {},
          .unsupported = {},
          .apply = [name, mistake](EnginePlan& plan, const Parameters&) {
            plan.token_choice.bind(name, [mistake](const ChoiceOptions& options) {
              return std::make_unique<FaultyChoice>(mistake, options);
            });
          }};
}

[[maybe_unused]] const bool allocation =
    register_variant(faulty("faulty-allocation", "One tensor more in each step.", allocate));
[[maybe_unused]] const bool concatenation =
    register_variant(faulty("faulty-concatenation", "One concatenation more in each step.", concatenate));

}  // namespace
}  // namespace decodelab
