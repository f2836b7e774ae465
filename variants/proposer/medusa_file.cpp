// Reads Medusa's heads.
#include "variants/proposer/medusa_file.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "engine/checkpoint/file_map.h"
#include "engine/kernels/scalar_type.h"

namespace decodelab {
namespace {

constexpr const char* kFile = "medusa_lm_head.safetensors";
constexpr std::uintmax_t kMostConfigBytes = 1'000'000;
constexpr std::int64_t kMostHeads = 64;

std::int64_t count_in(const nlohmann::json& config, const char* key, const std::string& file) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_number_integer() || found->get<std::int64_t>() < 1 ||
      found->get<std::int64_t>() > kMostHeads) {
    throw std::invalid_argument(fmt::format("{}: expected '{}', a number from 1 to {}, got {}", file, key, kMostHeads,
                                            found == config.end() ? "none" : shown(*found)));
  }
  return found->get<std::int64_t>();
}

/// The tensors of one file, as they are asked for.
class HeadTensors {
 public:
  HeadTensors(const std::filesystem::path& file, const MedusaShape& shape)
      : name_(file.string()), map_(file), tensors_(parse_safetensors(map_.bytes(), name_)), shape_(shape) {}

  /// Returns the tensor in the model's dtype on its device; undefined where there is none.
  at::Tensor find(const std::string& name, const std::vector<std::int64_t>& shape) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      return {};
    }
    const StoredTensor& stored = found->second;
    if (stored.shape != shape) {
      throw std::invalid_argument(fmt::format("{}: {} has the shape [{}], and the model asks for [{}]", name_, name,
                                              fmt::join(stored.shape, ", "), fmt::join(shape, ", ")));
    }
    at::Tensor read = at::empty(shape, scalar_type(stored.element_type(fmt::format("{}: {}", name_, name))));
    std::ranges::copy(stored.data, static_cast<std::byte*>(read.mutable_data_ptr()));
    return read.to(at::Device(shape_.device), scalar_type(shape_.dtype));
  }
  at::Tensor require(const std::string& name, const std::vector<std::int64_t>& shape) const {
    at::Tensor found = find(name, shape);
    if (!found.defined()) {
      throw std::invalid_argument(fmt::format("{}: there is no tensor {}", name_, name));
    }
    return found;
  }

 private:
  std::string name_;
  FileMap map_;
  std::map<std::string, StoredTensor> tensors_;
  MedusaShape shape_;
};

}  // namespace

std::vector<MedusaHead> load_medusa_heads(const std::filesystem::path& folder, const MedusaShape& shape) {
  const std::string config_file = (folder / "config.json").string();
  const nlohmann::json config = parse_json_object(read_text_file(config_file, kMostConfigBytes), config_file);
  const std::int64_t heads = count_in(config, "medusa_num_heads", config_file);
  const std::int64_t blocks = count_in(config, "medusa_num_layers", config_file);
  const HeadTensors tensors(folder / kFile, shape);
  const std::int64_t d = shape.hidden_size;
  std::vector<MedusaHead> loaded;
  for (std::int64_t head = 0; head < heads; ++head) {
    MedusaHead& of = loaded.emplace_back();
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::string role = fmt::format("{}.{}.linear.", head, block);
      of.blocks.push_back(
          {.weight = tensors.require(role + "weight", {d, d}), .bias = tensors.find(role + "bias", {d})});
    }
    of.head = tensors.find(fmt::format("{}.{}.weight", head, blocks), {shape.vocabulary_size, d});
  }
  return loaded;
}

}  // namespace decodelab
