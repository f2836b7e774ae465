// Which implementation each replaceable part of the engine uses: the slots, and the plan that binds them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/layers/layer_slots.h"
#include "engine/ranks/communicator.h"
#include "engine/sampling/sampling_slots.h"
#include "engine/sequences/sequence_slots.h"

namespace decodelab {

struct StepRunnerOptions;
class StepRunner;

/// Parameters of one variant, by name: numbers and words.
using ParameterValues = std::map<std::string, std::variant<std::int64_t, std::string>>;

/// The parameters of one variant in one arm, defaults filled in.
class Parameters {
 public:
  Parameters() = default;
  explicit Parameters(ParameterValues values) : values_(std::move(values)) {}

  /// Return a number and a word. Throw std::logic_error for a name that the variant did not declare as such.
  std::int64_t integer(std::string_view name) const;
  const std::string& word(std::string_view name) const;

 private:
  template <typename Value>
  const Value& value(std::string_view name) const;

  ParameterValues values_;
};

/// One replaceable part of the engine: the reference until a variant binds it, and then that variant for good.
template <typename Factory>
class Slot {
 public:
  explicit Slot(std::string name) : name_(std::move(name)) {}

  /// Sets the plainest implementation; for reference_plan() only.
  void set_reference(Factory factory) { factory_ = std::move(factory); }

  /// Binds `variant`. Throws std::invalid_argument, naming both, when another variant is bound already.
  void bind(std::string variant, Factory factory) {
    if (!variant_.empty()) {
      throw std::invalid_argument("variants '" + variant_ + "' and '" + variant + "' both bind the slot '" + name_ +
                                  "': keep one of them and remove the other (an arm removes with ',-" + variant_ +
                                  "')");
    }
    variant_ = std::move(variant);
    factory_ = std::move(factory);
  }

  const std::string& name() const { return name_; }
  /// The variant's name; empty for the reference.
  const std::string& variant() const { return variant_; }
  const Factory& factory() const { return factory_; }
  /// Returns the setting of a slot that holds a setting rather than a factory.
  const Factory& value() const { return factory_; }

 private:
  std::string name_;
  std::string variant_;
  Factory factory_{};
};

/// The engine calls it once per session.
using StepRunnerFactory = std::function<std::unique_ptr<StepRunner>(const StepRunnerOptions&)>;

/// A slot for every replaceable part; a variant binds one or more of them.
struct EnginePlan {
  Slot<PrefillLayout> prefill_layout{"prefill_layout"};
  Slot<AttentionFactory> prefill_attention{"prefill_attention"};
  Slot<AttentionFactory> decode_attention{"decode_attention"};
  Slot<AttentionFactory> verify_attention{"verify_attention"};
  Slot<SoftmaxFactory> softmax{"softmax"};
  Slot<KvCacheFactory> kv_growth{"kv_growth"};
  Slot<KvLayout> kv_layout{"kv_layout"};
  Slot<KeyMultiple> key_padding{"key_padding"};
  Slot<PrefixReuse> prefix_reuse{"prefix_reuse"};
  Slot<ForkWay> fork{"fork"};
  Slot<BatchingRule> batching{"batching"};
  Slot<ProposerRule> proposer{"proposer"};
  Slot<DraftLengthFactory> draft_length{"draft_length"};
  Slot<ResidualNormFactory> residual_norm{"residual_norm"};
  Slot<EmbeddingFactory> embedding{"embedding"};
  Slot<LinearFactory> linear{"linear"};
  Slot<MlpFactory> mlp{"mlp"};
  Slot<RotaryFactory> rotary{"rotary"};
  Slot<WorkspaceFactory> workspace{"workspace"};
  Slot<StepRunnerFactory> step_runner{"step_runner"};
  Slot<CommunicatorRule> communicator{"communicator"};
  Slot<LmHeadRowsFactory> lm_head_rows{"lm_head_rows"};
  Slot<TokenChoiceFactory> token_choice{"token_choice"};
  Slot<AcceptanceFactory> acceptance{"acceptance"};
  Slot<ReadBack> read_back{"read_back"};
  Slot<RngFactory> rng{"rng"};
  Slot<TokenMaskFactory> token_mask{"token_mask"};
  Slot<TokenDetailsFactory> token_details{"token_details"};
  Slot<TopTokensFactory> top_tokens{"top_tokens"};
  Slot<TokenTextFactory> token_text{"token_text"};
};

/// A slot's name and the variant that is bound to it (empty: the reference).
struct BoundSlot {
  std::string slot;
  std::string variant;
};

/// Returns every slot of a plan, in the order of EnginePlan.
std::vector<BoundSlot> slots_of(const EnginePlan& plan);

/// Returns the plan with every slot on its plainest implementation: the oracle, and the preset `causal`.
EnginePlan reference_plan();

}  // namespace decodelab
