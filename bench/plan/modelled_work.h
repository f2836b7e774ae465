// The least that a cell's steps must read and compute, from its weights and by closed forms: what no implementation
// can do without.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "profiles/range.h"
#include "reports/store/record.h"

namespace decodelab {

/// Bytes and floating-point operations of all counted steps together.
struct ModelledWork {
  std::int64_t weight_bytes = 0;  ///< Every matrix and norm once a step; of embeddings the rows that are looked up.
  /// Keys and values: read by every step whose queries see them, written once. Heads that share keys read them once.
  std::int64_t kv_bytes = 0;
  std::int64_t flops =
      0;  ///< 2 for each multiply-add: matrices, the pairs that attend, the head for one position a row.
};

/// Returns the work multiplied by `count`.
ModelledWork times(const ModelledWork& work, std::int64_t count);

/// Bytes of the matrices that an engine holds in another type than the model's, by role (Engine::coded_bytes()).
using CodedBytes = std::map<std::string, std::int64_t>;

/// Returns the work of `steps` prefills of the cell, or of `steps` decode steps from its length on. Rows have the
/// cell's length; in a prefill, the keys and values of the first `reused` tokens are there before it, in a decoder
/// alone.
ModelledWork modelled_work(const ModelConfig& config, const CellRecord& cell, std::int64_t steps,
                           std::int64_t reused = 0, const CodedBytes& coded = {});

/// Bytes of one step, split by the stage that must move them; over all layers they sum to weight_bytes + kv_bytes of
/// ModelledWork.
struct StageBytes {
  using ByStage = std::array<std::int64_t, kStageNames.size()>;
  std::vector<ByStage> layers;  ///< They may see different numbers of keys.
  ByStage outside{};            ///< Of all that is in no layer: embeddings, the last norm, the head.
};

/// Returns the bytes of the prefill of a cell, or of the decode step that finds `past` keys in every row, of a decoder
/// alone.
StageBytes modelled_stage_bytes(const ModelConfig& config, const CellRecord& cell, std::int64_t past,
                                const CodedBytes& coded = {});

}  // namespace decodelab
