// The encodings of tensors in GGUF files: their names, their sizes, and their values as fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace decodelab {

/// The encodings that dequantize() can read, with ggml's numbers. The type of a tensor may have any other number that
/// find_gguf_encoding() knows: such a tensor is listed, and refused by name when a weight asks for it.
enum class GgufType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30
};
inline constexpr std::string_view kReadableGgufTypes =
    "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K";

/// Describes an encoding: a row is cut into blocks of `block_elements` neighbours, and each takes `block_bytes`.
struct GgufEncoding {
  GgufType type;
  std::string_view name;  ///< As ggml spells it: F32, Q8_0, Q4_K, ...
  std::int64_t block_elements;
  std::int64_t block_bytes;
};

/// Returns the encoding, or nullptr for a number that ggml does not use or no longer uses. Source: the Python package
/// gguf 0.19.0 (github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py).
const GgufEncoding* find_gguf_encoding(GgufType type);

/// Returns ggml's name of the type, or "number N" for one that find_gguf_encoding() does not know.
std::string gguf_type_name(GgufType type);

/// Says whether dequantize() reads the type: kReadableGgufTypes.
bool can_dequantize(GgufType type);

/// Writes the values of `blocks`, a whole number of blocks, to `out`, in the order of the elements. Neither needs
/// alignment.
///
/// What a code stands for is said in gguf_decoders.h. The values equal those of gguf.quants in the Python package gguf
/// 0.19.0 bit by bit, but for the payload of a NaN.
///
/// Throws std::invalid_argument when can_dequantize(type) is false, naming the type, when `blocks` is no whole number
/// of blocks, or when `out` has another number of elements.
void dequantize(GgufType type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace decodelab
