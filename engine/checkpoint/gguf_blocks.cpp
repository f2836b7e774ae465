// Looks up the encodings of ggml's tensors, and walks through their blocks.
#include "engine/checkpoint/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/checkpoint/gguf_decoders.h"

namespace decodelab {
namespace {

constexpr std::array<GgufEncoding, 34> kGgufEncodings{{
    {GgufType::f32, "F32", 1, 4},       {GgufType::f16, "F16", 1, 2},       {GgufType::q4_0, "Q4_0", 32, 18},
    {GgufType::q4_1, "Q4_1", 32, 20},   {GgufType::q5_0, "Q5_0", 32, 22},   {GgufType::q5_1, "Q5_1", 32, 24},
    {GgufType::q8_0, "Q8_0", 32, 34},   {GgufType{9}, "Q8_1", 32, 40},      {GgufType{10}, "Q2_K", 256, 84},
    {GgufType{11}, "Q3_K", 256, 110},   {GgufType::q4_k, "Q4_K", 256, 144}, {GgufType::q5_k, "Q5_K", 256, 176},
    {GgufType::q6_k, "Q6_K", 256, 210}, {GgufType{15}, "Q8_K", 256, 292},   {GgufType{16}, "IQ2_XXS", 256, 66},
    {GgufType{17}, "IQ2_XS", 256, 74},  {GgufType{18}, "IQ3_XXS", 256, 98}, {GgufType{19}, "IQ1_S", 256, 50},
    {GgufType{20}, "IQ4_NL", 32, 18},   {GgufType{21}, "IQ3_S", 256, 110},  {GgufType{22}, "IQ2_S", 256, 82},
    {GgufType{23}, "IQ4_XS", 256, 136}, {GgufType{24}, "I8", 1, 1},         {GgufType{25}, "I16", 1, 2},
    {GgufType{26}, "I32", 1, 4},        {GgufType{27}, "I64", 1, 8},        {GgufType{28}, "F64", 1, 8},
    {GgufType{29}, "IQ1_M", 256, 56},   {GgufType::bf16, "BF16", 1, 2},     {GgufType{34}, "TQ1_0", 256, 54},
    {GgufType{35}, "TQ2_0", 256, 66},   {GgufType{39}, "MXFP4", 32, 17},    {GgufType{40}, "NVFP4", 64, 36},
    {GgufType{41}, "Q1_0", 128, 18},
}};

float gguf_bfloat16(const std::byte* stored) {
  std::uint16_t bits;
  std::memcpy(&bits, stored, sizeof bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <typename Decode>
void decode_gguf_blocks(const GgufEncoding& encoding, std::span<const std::byte> blocks, float* out, Decode decode) {
  const std::size_t count = blocks.size() / static_cast<std::size_t>(encoding.block_bytes);
  const std::byte* block = blocks.data();
  for (std::size_t i = 0; i < count; ++i) {
    decode(block, out);
    block += encoding.block_bytes;
    out += encoding.block_elements;
  }
}

}  // namespace

const GgufEncoding* find_gguf_encoding(GgufType type) {
  const auto found = std::ranges::find(kGgufEncodings, type, &GgufEncoding::type);
  return found == kGgufEncodings.end() ? nullptr : &*found;
}

std::string gguf_type_name(GgufType type) {
  const GgufEncoding* encoding = find_gguf_encoding(type);
  return encoding == nullptr ? fmt::format("number {}", static_cast<std::uint32_t>(type)) : std::string(encoding->name);
}

bool can_dequantize(GgufType type) {
  switch (type) {
    case GgufType::f32:
    case GgufType::f16:
    case GgufType::bf16:
    case GgufType::q8_0:
    case GgufType::q4_0:
    case GgufType::q4_1:
    case GgufType::q5_0:
    case GgufType::q5_1:
    case GgufType::q4_k:
    case GgufType::q5_k:
    case GgufType::q6_k: return true;
  }
  return false;
}

void dequantize(GgufType type, std::span<const std::byte> blocks, std::span<float> out) {
  const GgufEncoding* encoding = find_gguf_encoding(type);
  if (encoding == nullptr || !can_dequantize(type)) {
    throw std::invalid_argument(
        fmt::format("dequantize: expected {}, got {}; quantize the model again to one of these types",
                    kReadableGgufTypes, gguf_type_name(type)));
  }
  const auto block_bytes = static_cast<std::size_t>(encoding->block_bytes);
  const auto block_elements = static_cast<std::size_t>(encoding->block_elements);
  if (blocks.size() % block_bytes != 0 || out.size() % block_elements != 0 ||
      blocks.size() / block_bytes != out.size() / block_elements) {
    throw std::invalid_argument(
        fmt::format("dequantize: expected blocks of {} bytes for {} elements each of {}, got {} bytes for {} elements",
                    block_bytes, block_elements, encoding->name, blocks.size(), out.size()));
  }
  if (blocks.empty()) {
    return;
  }
  switch (type) {
    case GgufType::f32: std::memcpy(out.data(), blocks.data(), blocks.size()); break;
    case GgufType::f16:
      decode_gguf_blocks(*encoding, blocks, out.data(),
                         [](const std::byte* one, float* value) { *value = gguf_half_at(one); });
      break;
    case GgufType::bf16:
      decode_gguf_blocks(*encoding, blocks, out.data(),
                         [](const std::byte* one, float* value) { *value = gguf_bfloat16(one); });
      break;
    case GgufType::q8_0: decode_gguf_blocks(*encoding, blocks, out.data(), dequantize_q8_0); break;
    case GgufType::q4_0: decode_gguf_blocks(*encoding, blocks, out.data(), dequantize_q4_0); break;
    case GgufType::q4_1: decode_gguf_blocks(*encoding, blocks, out.data(), dequantize_q4_1); break;
    case GgufType::q5_0: decode_gguf_blocks(*encoding, blocks, out.data(), dequantize_q5_0); break;
    case GgufType::q5_1: decode_gguf_blocks(*encoding, blocks, out.data(), dequantize_q5_1); break;
    case GgufType::q4_k: decode_gguf_blocks(*encoding, blocks, out.data(), dequantize_q4_k); break;
    case GgufType::q5_k: decode_gguf_blocks(*encoding, blocks, out.data(), dequantize_q5_k); break;
    case GgufType::q6_k: decode_gguf_blocks(*encoding, blocks, out.data(), dequantize_q6_k); break;
  }
}

}  // namespace decodelab
