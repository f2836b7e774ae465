// Opens a checkpoint of either kind: a directory with config.json and safetensors, or a GGUF file.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <variant>

#include "engine/checkpoint/gguf.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"

namespace decodelab {

class CheckpointReader {
 public:
  /// Maps the weights of `config` at `path`. Throws what SafetensorsReader, GgufReader and gguf_tensors() throw.
  CheckpointReader(const std::filesystem::path& path, const ModelConfig& config);

  /// Returns the tensors by the names that the checkpoint has for them; those of a GGUF file by Hugging Face's.
  const std::map<std::string, StoredTensor>& tensors() const;

 private:
  struct Gguf {
    GgufReader reader;
    std::map<std::string, StoredTensor> tensors;
  };
  std::variant<SafetensorsReader, Gguf> reader_;
};

}  // namespace decodelab
