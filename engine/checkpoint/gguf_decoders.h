// The values of one block of each encoding of a GGUF file.
#pragma once

#include <cstddef>

namespace decodelab {

/// Returns the number in fp16 that lies there.
float gguf_half_at(const std::byte* stored);

/// The 6 bits that scale a group of Q4_K or Q5_K, and those that scale its least weight.
struct SixBits {
  int scale;
  int least;
};
/// Reads those of one of eight groups from 12 bytes: the first four are whole, of the last four the upper bits stand
/// above those of the first.
SixBits six_bits(const std::byte* packed, int group);

/// Each writes the values of one block, 32 of the first five types and 256 of the others. Scales d and least weights m
/// are fp16. The values equal those of gguf.quants in the Python package gguf 0.19.0 bit by bit.
///
/// Q8_0 is d * q, Q4_0 d * (q - 8), Q4_1 d * q + m, Q5_0 d * (q - 16) and Q5_1 d * q + m. In blocks of 256, groups of
/// 32 have 6 bits s and t each: Q4_K and Q5_K are d * s * q - m * t. Q6_K is d * s * (q - 32) with 8 bits s for 16
/// weights.
void dequantize_q8_0(const std::byte* block, float* out);
void dequantize_q4_0(const std::byte* block, float* out);
void dequantize_q4_1(const std::byte* block, float* out);
void dequantize_q5_0(const std::byte* block, float* out);
void dequantize_q5_1(const std::byte* block, float* out);
void dequantize_q4_k(const std::byte* block, float* out);
void dequantize_q5_k(const std::byte* block, float* out);
void dequantize_q6_k(const std::byte* block, float* out);

}  // namespace decodelab
