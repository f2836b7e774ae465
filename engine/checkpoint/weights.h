// The weights of a model as tensors on its device, by name, every shape checked.
#pragma once

#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace at {
class Tensor;
}

namespace decodelab {

/// What all weights of a configuration take in that dtype.
std::int64_t weight_bytes(const ModelConfig& config, ElementType dtype);

/// Bytes that are done and bytes in all, for a progress display.
using LoadProgress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

/// Immutable weights, all of one dtype on one device. On a CPU they lie in one arena that asks for huge pages: a decode step reads every
/// weight once, and with small pages the address translation is a cost of its own.
class Weights {
 public:
  /// Reads what `config` asks for from a checkpoint directory and converts it to `dtype`.
  ///
  /// Names may lack the `transformer.` prefix; attention's mask buffers (`.attn.bias`, `.attn.masked_bias`) are passed over; a separate
  /// `lm_head.weight` must equal the tied embedding. Throws std::invalid_argument with lists of what is missing and what is unknown, and
  /// for a tensor whose shape is not what `config` says.
  static Weights load(const std::filesystem::path& directory, const ModelConfig& config, ElementType dtype,
                      const std::string& device, const LoadProgress& progress = {});
  /// Throws what load() would throw for that directory, without copying any weight.
  static void check(const std::filesystem::path& directory, const ModelConfig& config);
  ~Weights();
  Weights(Weights&&) noexcept;
  Weights& operator=(Weights&&) noexcept;

  /// The tensor of a Hugging Face name. Throws std::logic_error for a name that weight_specs() does not list.
  const at::Tensor& at(const std::string& name) const;
  std::int64_t bytes() const;

 private:
  Weights();
  std::map<std::string, at::Tensor> tensors_;
};

}  // namespace decodelab
