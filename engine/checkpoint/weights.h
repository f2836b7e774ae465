// The weights of a model as tensors on its device, by name, every shape checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/memory_at_hand.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/rank_part.h"
#include "engine/checkpoint/safetensors.h"

namespace at {
class Tensor;
}

namespace decodelab {

/// Returns the bytes that all weights of a configuration take in that dtype.
std::int64_t weight_bytes(const ModelConfig& config, ElementType dtype);

/// Called with the bytes that are done and the bytes in all, for a progress display.
using LoadProgress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

/// Holds immutable weights, all of one dtype on one device. On a CPU they lie in one arena that requests huge pages: a
/// decode step reads every weight once, and with small pages the address translation would add to its cost.
///
/// On a CPU a weight is brought into the arena when it is first requested: an arm that has packed its weights needs
/// none of them there. Elsewhere that is so of what open() and part() return.
class Weights {
 public:
  /// Finds the weights that `config` asks for in a checkpoint directory; they are converted to `dtype`. With
  /// `progress`, and on another device than a CPU, all of them are read at once. `at_hand` is asked before a weight is
  /// brought into memory.
  ///
  /// Names may lack the family's prefix; what the family ignores (masks) is left out; a separate `lm_head.weight` of a
  /// tied model must equal the embedding. Throws std::invalid_argument with lists of what is missing and what is
  /// unknown, and for a tensor whose shape is not what `config` says.
  static Weights load(const std::filesystem::path& directory, const ModelConfig& config, ElementType dtype,
                      const std::string& device, const LoadProgress& progress = {}, const MemoryAtHand& at_hand = {});
  /// Does the same and reads none: for who holds a part of them.
  static Weights open(const std::filesystem::path& directory, const ModelConfig& config, ElementType dtype,
                      const std::string& device, const MemoryAtHand& at_hand = {});
  /// Throws what load() would throw for that directory, without copying any weight.
  static void check(const std::filesystem::path& directory, const ModelConfig& config);
  /// Returns what a rank holds of the weights, on the same device: each is cut when it is brought there, and a head
  /// that is tied to the embedding becomes a weight of its own, since the embedding stays whole. `config` is that of
  /// the whole model. Throws std::invalid_argument where the ranks cannot share the model.
  Weights part(const ModelConfig& config, const RankPart& part) const;
  ~Weights();
  Weights(Weights&&) noexcept;
  Weights& operator=(Weights&&) noexcept;

  /// Returns the weight of a role (RoleSpec), in memory and ordered as the engine wants it. Threads may call it at the
  /// same time. Throws std::logic_error for a role that weight_roles() does not list, and NotEnoughMemory where the
  /// tensor does not fit.
  const at::Tensor& at(const std::string& role) const;
  /// Returns the same values in the same dtype, to be read once and not in steps: where the file has them as the engine
  /// wants them, the tensor lies in the file's map; else it is made, and freed with the tensor.
  at::Tensor read(const std::string& role) const;
  /// Returns how a GGUF file holds a matrix, parts one above the other; empty where it does not hold it in blocks, and
  /// where a rank holds a part of it.
  std::vector<StoredBlocks> blocks(const std::string& role) const;
  /// Copies rows `ids`, [n] on a CPU, of a matrix from the file to `rows`, [n, width] in the dtype of the weights,
  /// without bringing the matrix into memory. Throws std::logic_error for a matrix that does not lie in the file as it
  /// is wanted.
  void read_rows(const std::string& role, const at::Tensor& ids, const at::Tensor& rows) const;
  bool has(const std::string& role) const;
  std::vector<std::int64_t> shape(const std::string& role) const;
  ElementType dtype() const;
  std::int64_t bytes() const;
  /// Returns the time spent so far on bringing weights into memory.
  std::int64_t loading_ns() const;

 private:
  struct Impl;
  explicit Weights(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace decodelab
