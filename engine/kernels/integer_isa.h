// The instruction sets that products of 8-bit codes are written for.
#pragma once

#include <cstdint>

namespace decodelab {

/// Names the instruction sets, the best last. `avx512_vnni` sums the products of four pairs of bytes in one
/// instruction, `amx_int8` also those of tiles of bytes.
enum class IntegerIsa : std::uint8_t { portable, avx2, avx512_vnni, amx_int8 };
const char* to_string(IntegerIsa isa);
/// Returns the best set that this processor has.
IntegerIsa best_integer_isa();

}  // namespace decodelab
