// How many tokens a row of the cache holds when a cell's steps begin.
#pragma once

#include <cstdint>

#include "bench/plan/cell_fill.h"
#include "engine/checkpoint/model_config.h"
#include "reports/store/record.h"

namespace decodelab {

/// Returns the tokens that each row of the decoder's cache holds before the first decode step of a cell, or after the
/// prefill of another phase. A cell's length counts the tokens of the prompt, which an encoder may have read.
inline std::int64_t held_tokens(const ModelConfig& config, const CellRecord& cell) {
  const CellFill fill = cell_fill_from_string(cell.fill);
  const bool filled = begins_with_keys(cell.phase) && !fill.generated;
  return config.encoder && filled ? fill.decoder_tokens : config.held_after_prefill(cell.length);
}

}  // namespace decodelab
