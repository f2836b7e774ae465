// The plainest implementation of every slot: what all variants are checked against.
#include "engine/generation/step_runner.h"
#include "engine/layers/attention.h"
#include "engine/layers/embedding.h"
#include "engine/layers/kv_cache.h"
#include "engine/layers/linear.h"
#include "engine/layers/lm_head_rows.h"
#include "engine/layers/mlp.h"
#include "engine/layers/residual_norm.h"
#include "engine/layers/rotary.h"
#include "engine/layers/softmax.h"
#include "engine/layers/workspace.h"
#include "engine/masks/token_mask.h"
#include "engine/plan.h"
#include "engine/sampling/acceptance.h"
#include "engine/sampling/rng.h"
#include "engine/sampling/token_choice.h"
#include "engine/sampling/token_details.h"
#include "engine/sampling/token_text.h"
#include "engine/sampling/top_tokens.h"

namespace decodelab {

EnginePlan reference_plan() {
  EnginePlan plan;
  plan.prefill_layout.set_reference(PrefillLayout::padded);
  plan.prefill_attention.set_reference(make_math_attention);
  plan.decode_attention.set_reference(make_math_attention);
  plan.verify_attention.set_reference(make_math_attention);
  plan.softmax.set_reference(make_unfused_softmax);
  plan.kv_growth.set_reference(make_concatenated_cache);
  plan.kv_layout.set_reference(KvLayout::split);
  plan.key_padding.set_reference(1);
  plan.prefix_reuse.set_reference(PrefixReuse::none);
  plan.fork.set_reference(ForkWay::prefill_each);
  plan.batching.set_reference({});
  plan.proposer.set_reference({});
  plan.draft_length.set_reference({});
  plan.read_back.set_reference(ReadBack::each);
  plan.residual_norm.set_reference(make_plain_residual_norm);
  plan.embedding.set_reference(make_table_embedding);
  plan.linear.set_reference(make_plain_linear);
  plan.mlp.set_reference(make_plain_mlp);
  plan.rotary.set_reference(make_plain_rotary);
  plan.workspace.set_reference([](std::int64_t, const std::string&) { return std::make_unique<PlainWorkspace>(); });
  plan.step_runner.set_reference(make_eager_runner);
  plan.communicator.set_reference({});
  plan.lm_head_rows.set_reference(make_all_lm_head_rows);
  plan.token_choice.set_reference(make_row_by_row_choice);
  plan.acceptance.set_reference(make_match_acceptance);
  plan.rng.set_reference(make_row_rng);
  plan.token_mask.set_reference(make_scan_masks);
  plan.token_details.set_reference(make_details_always);
  plan.top_tokens.set_reference(make_row_details);
  plan.token_text.set_reference(make_decoded_text);
  return plan;
}

}  // namespace decodelab
