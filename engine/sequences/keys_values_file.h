// Keys and values in a safetensors file: a prefix that was computed elsewhere, or learned (prefix tuning; Li and Liang
// 2021, arXiv:2101.00190), and what a session of ours held.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/kernels/element_type.h"
#include "engine/tensor.h"

namespace decodelab {

/// Says what a file must hold: the tensors NAME.keys and NAME.values, [B, L, width / 2] each, for every name. B and L
/// are those of the first.
struct KeysValuesFile {
  std::vector<std::string> names;  ///< Of layers, as `layers.0`.
  std::int64_t width = 0;          ///< W = 2 * kv_heads * head_dim
  ElementType dtype = ElementType::float32;
  std::string device = "cpu";
};

/// Writes layers, [B, L, W] each, keys first, through a temporary neighbour and a rename. Throws std::runtime_error
/// with the file's name when the system refuses.
void write_keys_values(const std::filesystem::path& path, const KeysValuesFile& file,
                       const std::vector<at::Tensor>& layers);

/// Reads such a file: [B, L, W] of each name, converted to the dtype, on the device. Throws std::invalid_argument
/// naming the file for what is no safetensors file, for a tensor that is missing, of another shape or of no row or
/// token, and for numbers that are not finite.
std::vector<at::Tensor> read_keys_values(const std::filesystem::path& path, const KeysValuesFile& file);

}  // namespace decodelab
