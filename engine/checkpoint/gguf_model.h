// A GGUF file as a model: its metadata as a config.json, its tensors under the names of Hugging Face.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/gguf.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"

namespace decodelab {

/// Says how a family's models are stored in GGUF files; a family that is never stored so has none.
struct GgufNames {
  std::string_view architecture;  ///< `general.architecture`
  /// Writes the keys that the family's read() reads, from the file's metadata. `prefix` is the architecture and a dot.
  void (*config)(const GgufFile& file, const std::string& prefix, nlohmann::ordered_json& object);
  /// Returns the name in a Hugging Face checkpoint of a tensor of the file, or an empty one for what is no weight.
  std::string (*stored_name)(std::string_view name);
  /// Rows of query and key are stored as [H, k / 2, 2], and lie as [H, 2, k / 2] in a Hugging Face checkpoint.
  bool permutes_queries_and_keys = false;
};

/// Returns the configuration of the model in a GGUF file. Throws std::invalid_argument naming the file for an
/// architecture that no family has, and for keys that are missing or that the family refuses.
ModelConfig gguf_model_config(const GgufFile& file);

/// Returns the tensors of a file by the names of weight_specs(), with what decodes them. They are valid as long as the
/// file's reader lives. Throws std::invalid_argument naming the tensor for a type that dequantize() does not read.
std::map<std::string, StoredTensor> gguf_tensors(const GgufFile& file, const ModelConfig& config);

}  // namespace decodelab
