// The instruction sets that products of 8-bit codes are written for.
#pragma once

#include <cstdint>

namespace decodelab {

/// Names the instruction sets, the best last. `avx512_vnni` sums the products of four pairs of bytes in one
/// instruction.
enum class IntegerIsa : std::uint8_t { portable, avx2, avx512_vnni };
const char* to_string(IntegerIsa isa);
/// Returns the best set that this processor has.
IntegerIsa best_integer_isa();

}  // namespace decodelab
