// Looks a GGUF file's architecture up among the families, and translates its keys and names.
#include "engine/checkpoint/gguf_model.h"

#include <set>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "engine/checkpoint/family.h"

namespace decodelab {
namespace {

const Family& family_of_file(const GgufFile& file) {
  const std::string_view architecture = file.metadata.text("general.architecture");
  std::vector<std::string_view> known;
  for (const Family* family : families()) {
    if (family->gguf != nullptr && family->gguf->architecture == architecture) {
      return *family;
    }
    if (family->gguf != nullptr) {
      known.push_back(family->gguf->architecture);
    }
  }
  throw std::invalid_argument(fmt::format("{}: key 'general.architecture': expected one of {}, got {}",
                                          file.metadata.file_name(), fmt::join(known, ", "), in_quotes(architecture)));
}

/// Returns a tensor's blocks, by rows of its last dimension; where rows are permuted, those of the first.
StoredBlocks blocks_of(const GgufTensor& tensor, const std::string& name, std::int64_t permuted_head) {
  const bool by_first = permuted_head > 0 || tensor.shape.size() > 1;
  const std::int64_t rows = by_first && !tensor.shape.empty() ? tensor.shape.front() : 1;
  try {
    return {tensor.type, rows, rows == 0 ? 0 : tensor.elements() / rows, tensor.data, permuted_head};
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("tensor {}: {}", in_quotes(name), error.what()));
  }
}

/// The name of an element type that a tensor has as it lies, or an empty one.
std::string_view plain_type(GgufType type) {
  switch (type) {
    case GgufType::f32: return safetensors_name(ElementType::float32);
    case GgufType::f16: return safetensors_name(ElementType::float16);
    case GgufType::bf16: return safetensors_name(ElementType::bfloat16);
    default: return {};
  }
}

}  // namespace

ModelConfig gguf_model_config(const GgufFile& file) {
  const Family& family = family_of_file(file);
  nlohmann::ordered_json object;
  object["model_type"] = family.model_type;
  family.gguf->config(file, std::string(family.gguf->architecture) + ".", object);
  ModelConfig config = parse_model_config(object.dump(), file.metadata.file_name());
  std::set<GgufType> types;
  for (const auto& [name, tensor] : file.tensors) {
    if (tensor.shape.size() == 2 && !family.gguf->stored_name(name).empty()) {
      types.insert(tensor.type);
    }
  }
  config.stored_types.assign(types.begin(), types.end());
  return config;
}

std::map<std::string, StoredTensor> gguf_tensors(const GgufFile& file, const ModelConfig& config) {
  const GgufNames& names = *family_of_file(file).gguf;
  std::map<std::string, StoredTensor> tensors;
  for (const auto& [name, tensor] : file.tensors) {
    const std::string stored = names.stored_name(name);
    if (stored.empty()) {
      continue;
    }
    const GgufTensor& readable = file.tensor(name);
    const bool permuted = names.permutes_queries_and_keys && (stored.find(".q_proj.") != std::string::npos ||
                                                              stored.find(".k_proj.") != std::string::npos);
    const std::string_view plain = plain_type(readable.type);
    const auto [place, is_new] = tensors.try_emplace(stored);
    if (!is_new) {
      throw std::invalid_argument(fmt::format("{}: tensor {} stands for '{}', and so does another",
                                              file.metadata.file_name(), in_quotes(name), stored));
    }
    StoredTensor& result = place->second;
    result = {.dtype = plain.empty() ? gguf_type_name(readable.type) : std::string(plain),
              .shape = readable.shape,
              .data = readable.data};
    if (plain.empty() || permuted) {
      result.blocks.emplace(blocks_of(readable, name, permuted ? config.head_dim : 0));
    }
  }
  return tensors;
}

}  // namespace decodelab
