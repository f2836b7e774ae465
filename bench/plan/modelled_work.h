// The least that a cell's steps must read and compute, by closed forms: what no implementation can do without.
#pragma once

#include "engine/checkpoint/model_config.h"
#include "reports/store/record.h"

#include <cstdint>

namespace decodelab {

/// Over all counted steps.
struct ModelledWork {
  std::int64_t weight_bytes = 0;  ///< Every matrix and norm once a step; of embeddings the rows that are looked up.
  std::int64_t kv_bytes = 0;      ///< Keys and values: read by every step that holds them, written once.
  std::int64_t flops = 0;  ///< 2 for each multiply-add: matrices, causal attention, the head for one position a row.
};

/// The same work `count` times.
ModelledWork times(const ModelledWork& work, std::int64_t count);

/// `steps` prefills of the cell, or decode steps from its length on. Rows have the cell's length.
ModelledWork modelled_work(const ModelConfig& config, const CellRecord& cell, std::int64_t steps);

}  // namespace decodelab
