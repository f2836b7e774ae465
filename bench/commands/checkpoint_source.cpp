// Resolves `--model`: a directory as it is, a synthetic name through the cache on disk.
#include "bench/commands/checkpoint_source.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/nearest_names.h"
#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "engine/checkpoint/gguf.h"
#include "engine/checkpoint/synthetic.h"
#include "engine/checkpoint/synthetic_cache.h"
#include "engine/checkpoint/weights.h"
#include "engine/engine.h"

namespace decodelab {
namespace {

/// Every synthetic checkpoint is made from this seed, whatever the seed of a sweep: one copy on disk serves all.
constexpr std::uint64_t kWeightSeed = 0;

/// The name that it has in its package too.
constexpr const char* kSmollm2File = "SmolLM2-135M-Instruct.Q4_1.gguf";

}  // namespace

std::filesystem::path smollm2_file() { return default_cache_directory() / kSmollm2 / kSmollm2File; }

std::filesystem::path path_of_model(const std::string& model) {
  if (model == kSmollm2) {
    const std::filesystem::path file = smollm2_file();
    if (!std::filesystem::exists(file)) {
      throw std::invalid_argument(fmt::format(
          "--model '{}': {} is not there; 'decodelab fetch {}' downloads it (93 MB)", model, file.string(), model));
    }
    return file;
  }
  if (!std::filesystem::is_directory(model) && !is_gguf(model)) {
    std::vector<std::string> names = synthetic_names();
    names.emplace_back(kSmollm2);
    const std::string guess = did_you_mean(model, names);
    throw std::invalid_argument(fmt::format(
        "--model '{}' is neither a directory with config.json and safetensors, nor a GGUF file, nor {}, nor "
        "a synthetic model{}{} ('decodelab list models' shows those)",
        model, kSmollm2, guess.empty() ? "" : "; ", guess));
  }
  return std::filesystem::absolute(model);
}

ModelConfig config_of(const std::string& model) {
  if (const auto config = synthetic_config(model)) {
    return *config;
  }
  return load_model_config(path_of_model(model));
}

ModelText text_of_model(const std::string& model) {
  if (synthetic_config(model)) {
    return {.tokenizer = {}, .why_not = model + " has no tokenizer: give prompt_ids", .affixes = {}, .chat = {}};
  }
  return load_model_text(path_of_model(model));
}

CheckpointSource open_checkpoint(const std::string& model, ElementType dtype, const std::string& device) {
  const ModelConfig config = config_of(model);
  if (!synthetic_config(model)) {
    const std::filesystem::path path = path_of_model(model);
    check_checkpoint(path);
    return {.path = path, .config = config, .synthetic = false};
  }
  require_memory(weight_bytes(config, dtype), memory_to_take(device), model);
  ByteProgress progress("making " + model);
  const auto directory = materialize_synthetic(model, dtype, kWeightSeed, default_cache_directory(),
                                               [&](std::int64_t done, std::int64_t total) { progress(done, total); });
  return {.path = directory, .config = config, .synthetic = true};
}

}  // namespace decodelab
