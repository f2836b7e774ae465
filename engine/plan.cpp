// The parts of the plan that touch no tensor.
#include "engine/plan.h"

namespace decodelab {

template <typename Value>
const Value& Parameters::value(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  if (found == values_.end() || !std::holds_alternative<Value>(found->second)) {
    throw std::logic_error("a variant asked for its parameter '" + std::string(name) + "' but never declared it");
  }
  return std::get<Value>(found->second);
}

std::int64_t Parameters::integer(std::string_view name) const { return value<std::int64_t>(name); }
const std::string& Parameters::word(std::string_view name) const { return value<std::string>(name); }

std::vector<BoundSlot> slots_of(const EnginePlan& plan) {
  std::vector<BoundSlot> slots;
  const auto add = [&slots](const auto& slot) { slots.push_back({slot.name(), slot.variant()}); };
  add(plan.prefill_layout);
  add(plan.prefill_attention);
  add(plan.decode_attention);
  add(plan.verify_attention);
  add(plan.softmax);
  add(plan.kv_growth);
  add(plan.kv_layout);
  add(plan.key_padding);
  add(plan.prefix_reuse);
  add(plan.fork);
  add(plan.batching);
  add(plan.proposer);
  add(plan.draft_length);
  add(plan.residual_norm);
  add(plan.embedding);
  add(plan.linear);
  add(plan.mlp);
  add(plan.rotary);
  add(plan.workspace);
  add(plan.step_runner);
  add(plan.communicator);
  add(plan.lm_head_rows);
  add(plan.token_choice);
  add(plan.acceptance);
  add(plan.read_back);
  add(plan.rng);
  add(plan.token_mask);
  add(plan.token_details);
  add(plan.top_tokens);
  add(plan.token_text);
  return slots;
}

}  // namespace decodelab
