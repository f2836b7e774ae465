// The codes of a GGUF file's blocks, as products take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/checkpoint/gguf_blocks.h"
#include "engine/kernels/products/coded/weight_code.h"

namespace decodelab {

/// Returns the code that holds every block of the type exactly, the one of fewest bits; none where there is none.
std::optional<WeightCode> code_of(GgufType type);

/// Returns block `index` of a row. `type` has a code.
CodedGroup coded_block(GgufType type, std::span<const std::byte> row, std::int64_t index);

}  // namespace decodelab
