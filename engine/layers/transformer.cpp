// The loop over attention sites.
#include "engine/layers/transformer.h"

#include "engine/layers/attention.h"
#include "engine/layers/kv_cache.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/layers/workspace.h"
#include "profiles/range.h"

namespace decodelab {

at::Tensor forward(const Transformer& transformer, const Attention& attention, KvCache& cache,
                   const at::Tensor& token_ids, const StepRows& rows, Workspace& workspace) {
  count_amount(Amount::padding_tokens, rows.padding_tokens());
  const Step step{.rows = rows, .workspace = workspace};
  ResidualStream stream = in_stage(Stage::embed, [&] { return transformer.embed(token_ids, step); });
  for (std::int64_t layer = 0; layer < transformer.sites(); ++layer) {
    const LayerRange range(layer);
    workspace.begin_layer(layer);
    const Projected packed = in_stage(Stage::qkv, [&] { return transformer.before(layer, stream, step); });
    const Projected projected{.query = rows.padded(packed.query), .key_value = rows.padded(packed.key_value)};
    const KeysValues held = in_stage(Stage::kv_write, [&] { return cache.append(layer, projected.key_value, rows); });
    const at::Tensor attended = in_stage(Stage::attention, [&] {
      return attention.forward({.layer = layer,
                                .query = projected.query,
                                .keys = held.keys,
                                .values = held.values,
                                .rows = rows,
                                .workspace = workspace,
                                .window = transformer.config().recipe(layer).window});
    });
    transformer.after(layer, stream, rows.packed(attended), step);
  }
  workspace.end_layers();
  return in_stage(Stage::norm, [&] { return stream.sum(workspace); });
}

}  // namespace decodelab
