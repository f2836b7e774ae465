// Reads and writes config.json by the rules of the model's family.
#include "engine/checkpoint/model_config.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "engine/checkpoint/family.h"
#include "engine/checkpoint/gguf_model.h"

namespace decodelab {
namespace {

using nlohmann::json;

constexpr std::uintmax_t kMaxConfigBytes = 10'000'000;  // A real one has 2 KB.

std::string supported_families() {
  std::vector<std::string_view> names;
  for (const Family* family : families()) {
    names.push_back(family->model_type);
  }
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

const Family* find_family(std::string_view model_type) {
  const auto found = std::ranges::find(families(), model_type, &Family::model_type);
  return found == families().end() ? nullptr : *found;
}

void check_no_quantization(const ConfigKeys& keys) {
  const json* quantization = keys.find({"quantization_config"});
  if (quantization != nullptr && !quantization->is_null()) {
    keys.refuse("quantization_config", "none: weights in F32, F16 or BF16; use the checkpoint before its quantization",
                shown(*quantization));
  }
}

}  // namespace

const Family& family_of(std::string_view model_type) {
  if (const Family* family = find_family(model_type)) {
    return *family;
  }
  throw std::invalid_argument(
      fmt::format("expected a model of a supported family ({}), got {}", supported_families(), in_quotes(model_type)));
}

ModelConfig parse_model_config(std::string_view text, const std::string& file_name) {
  const json object = parse_json_object(text, file_name);
  const ConfigKeys keys(object, file_name);
  const json* model_type = keys.find({"model_type"});
  const Family* family =
      model_type != nullptr && model_type->is_string() ? find_family(model_type->get<std::string>()) : nullptr;
  if (family == nullptr) {
    keys.refuse("model_type", fmt::format("a supported family ({})", supported_families()),
                model_type == nullptr ? "none" : shown(*model_type));
  }
  check_no_quantization(keys);
  keys.require("add_cross_attention", false, "a decoder alone");
  ModelConfig config{.family = std::string(family->model_type)};
  family->read(keys, config);
  config.later_eos_token_ids = keys.later_tokens("eos_token_id", config.vocabulary_size);
  return config;
}

ModelConfig load_model_config(const std::filesystem::path& path) {
  if (std::filesystem::is_regular_file(path)) {
    return gguf_model_config(GgufReader(path).file());
  }
  const std::filesystem::path file = path / "config.json";
  return parse_model_config(read_text_file(file, kMaxConfigBytes), file.string());
}

std::string config_json(const ModelConfig& config) {
  nlohmann::ordered_json object;
  object["model_type"] = config.family;
  family_of(config.family).write(config, object);
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    object[key] = config.eos_token_id < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(config.eos_token_id);
  }
  if (!config.later_eos_token_ids.empty()) {
    object["eos_token_id"] = config.eos_token_ids();
  }
  return object.dump(2) + "\n";
}

std::vector<RoleSpec> weight_roles(const ModelConfig& config) { return family_of(config.family).roles(config); }

std::vector<WeightSpec> weight_specs(const ModelConfig& config) {
  std::vector<WeightSpec> specs;
  for (const RoleSpec& role : weight_roles(config)) {
    specs.insert(specs.end(), role.stored.begin(), role.stored.end());
  }
  return specs;
}

std::int64_t parameter_count(const ModelConfig& config) {
  std::int64_t count = 0;
  for (const WeightSpec& weight : weight_specs(config)) {
    std::int64_t elements = 1;
    for (const std::int64_t dimension : weight.shape) {
      elements *= dimension;
    }
    count += elements;
  }
  return count;
}

}  // namespace decodelab
