// Looks a GGUF file's architecture up among the families, and translates its keys and names.
#include "engine/checkpoint/gguf_model.h"

#include <algorithm>
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

/// Returns rows stored as [H, k / 2, 2] in the order [H, 2, k / 2].
void unpermute_rows(std::span<float> values, std::int64_t rows, std::int64_t head_dim) {
  const auto width = values.size() / static_cast<std::size_t>(rows);
  const std::vector<float> stored(values.begin(), values.end());
  const std::int64_t half = head_dim / 2;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t within = row % head_dim;
    const std::int64_t source = row - within + within % half * 2 + within / half;
    std::copy_n(stored.begin() + source * static_cast<std::int64_t>(width), width,
                values.begin() + row * static_cast<std::int64_t>(width));
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
  return parse_model_config(object.dump(), file.metadata.file_name());
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
      result.decode = [readable, permuted, head_dim = config.head_dim](std::span<float> values) {
        dequantize(readable.type, readable.data, values);
        if (permuted) {
          unpermute_rows(values, readable.shape.front(), head_dim);
        }
      };
    }
  }
  return tensors;
}

}  // namespace decodelab
