// Resolves `--model`: a directory as it is, a synthetic name through the cache on disk.
#include "bench/commands/checkpoint_source.h"

#include <stdexcept>

#include <fmt/format.h>

#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "engine/checkpoint/synthetic.h"
#include "engine/checkpoint/synthetic_cache.h"
#include "engine/checkpoint/weights.h"
#include "engine/engine.h"

namespace decodelab {
namespace {

/// Every synthetic checkpoint is made from this seed, whatever the seed of a sweep: one copy on disk serves all.
constexpr std::uint64_t kWeightSeed = 0;

}  // namespace

ModelConfig config_of(const std::string& model) {
  if (const auto config = synthetic_config(model)) {
    return *config;
  }
  if (!std::filesystem::is_directory(model)) {
    throw std::invalid_argument(
        fmt::format("--model '{}' is neither a directory with config.json and safetensors nor a synthetic model "
                    "('decodelab list models' shows those)",
                    model));
  }
  return load_model_config(model);
}

CheckpointSource open_checkpoint(const std::string& model, ElementType dtype, const std::string& device) {
  const ModelConfig config = config_of(model);
  if (!synthetic_config(model)) {
    check_checkpoint(model);
    return {.directory = std::filesystem::absolute(model), .config = config, .synthetic = false};
  }
  require_memory(weight_bytes(config, dtype), memory_to_take(device), model);
  ByteProgress progress("making " + model);
  const auto directory = materialize_synthetic(model, dtype, kWeightSeed, default_cache_directory(),
                                               [&](std::int64_t done, std::int64_t total) { progress(done, total); });
  return {.directory = directory, .config = config, .synthetic = true};
}

}  // namespace decodelab
