// The loop over attention sites.
#include "engine/layers/transformer.h"

#include <stdexcept>

#include "engine/layers/attention.h"
#include "engine/layers/encoded_prompts.h"
#include "engine/layers/kv_cache.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/layers/workspace.h"
#include "profiles/range.h"

namespace decodelab {

at::Tensor Transformer::score_bias(std::int64_t, std::int64_t, const ForwardStep&) const { return {}; }

at::Tensor Transformer::head(const at::Tensor& hidden, Workspace& workspace) const {
  const Range range(Stage::head);
  count_amount(Amount::lm_head_rows, hidden.size(0));
  return logits(last_norm(hidden, workspace), workspace);
}

std::unique_ptr<EncodedPrompts> Transformer::encode(const at::Tensor&, const Attention&, const ForwardStep&) const {
  throw std::logic_error("a decoder alone has no encoder to run");
}

std::unique_ptr<Transformer> make_transformer(const ModelConfig& config, const Weights& weights,
                                              const LayerSlots& slots, PreparedWeights& prepared) {
  return config.encoder ? make_encoder_decoder(config, weights, slots, prepared)
                        : make_decoder(config, weights, slots, prepared);
}

at::Tensor forward(const Transformer& transformer, const Attention& attention, KvCache& cache,
                   const at::Tensor& token_ids, const ForwardStep& step) {
  const StepRows& rows = step.rows;
  Workspace& workspace = step.workspace;
  count_amount(Amount::padding_tokens, rows.padding_tokens());
  ResidualStream stream = in_stage(Stage::embed, [&] { return transformer.embed(token_ids, step); });
  for (std::int64_t index = 0; index < transformer.sites(); ++index) {
    const AttentionSite site = transformer.site(index);
    const LayerRange range(site.layer);
    workspace.begin_layer(index);
    const KvRoom room =
        site.writes ? in_stage(Stage::kv_write, [&] { return cache.room(site.layer, rows); }) : KvRoom{};
    ForwardStep here = step;
    here.room = room.keys.defined() ? &room : nullptr;
    const Projected packed = in_stage(Stage::qkv, [&] { return transformer.before(index, stream, here); });
    const KeysValues held = site.crosses ? step.encoded->held(site.layer) : in_stage(Stage::kv_write, [&] {
      return here.room != nullptr ? cache.written(site.layer, rows)
                                  : cache.append(site.layer, packed.key_value, rows, attention.reads_pages());
    });
    const at::Tensor attended = in_stage(Stage::attention, [&] {
      const std::int64_t keys = held.pages == nullptr ? held.keys.size(1) : rows.keys();
      const at::Tensor bias = transformer.score_bias(index, keys, step);
      const bool as_they_are = attention.reads_packed(rows) && !bias.defined() && !site.crosses;
      const at::Tensor query = as_they_are ? packed.query : rows.padded(packed.query);
      const at::Tensor result = attention.forward({.layer = site.layer,
                                                   .query = query,
                                                   .keys = held.keys,
                                                   .values = held.values,
                                                   .rows = site.crosses ? step.encoded->rows() : rows,
                                                   .workspace = workspace,
                                                   .bias = bias.defined() ? &bias : nullptr,
                                                   .window = transformer.config().recipe(site.layer).window,
                                                   .pages = held.pages});
      return as_they_are ? result : rows.packed(result);
    });
    transformer.after(index, stream, attended, step);
  }
  workspace.end_layers();
  return in_stage(Stage::norm, [&] { return stream.sum(workspace); });
}

}  // namespace decodelab
