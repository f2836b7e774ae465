// The heads that Medusa adds to a model, as files hold them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/tensor.h"

namespace decodelab {

/// One head, which guesses a token further ahead than the head before it: residual blocks, and what turns their result
/// into logits. All tensors are on the model's device.
struct MedusaHead {
  struct Block {
    at::Tensor weight;  ///< [d, d]
    at::Tensor bias;    ///< [d]; undefined where the file has none.
  };
  std::vector<Block> blocks;
  at::Tensor head;  ///< [V, d]; undefined where the head is the model's own.
};

/// What heads are read for.
struct MedusaShape {
  std::int64_t hidden_size = 0;
  std::int64_t vocabulary_size = 0;
  ElementType dtype = ElementType::float32;
  std::string device;
};

/// Reads FOLDER/config.json (`medusa_num_heads`, `medusa_num_layers`) and FOLDER/medusa_lm_head.safetensors, in the
/// layout of Medusa and text-generation-inference: block j of head i is `i.j.linear.weight` and `i.j.linear.bias`, and
/// behind its n blocks may stand `i.n.weight`, a head of its own (Cai et al. 2024, arXiv:2401.10774).
///
/// Throws std::invalid_argument naming the file for what is missing, malformed, or of another shape than the model's.
std::vector<MedusaHead> load_medusa_heads(const std::filesystem::path& folder, const MedusaShape& shape);

}  // namespace decodelab
