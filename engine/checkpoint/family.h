// What a model family is to the engine: how its config.json is read and written, and where its weights are stored.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/config_keys.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_spec.h"

namespace decodelab {

struct GgufNames;

/// A configuration that `synthetic:NAME` stands for, that of the model of this name on the hub.
struct SyntheticModel {
  std::string_view name;
  ModelConfig config;
};

/// Describes a family: one file in engine/families, which defines a function `const Family& NAME()` in the namespace
/// `model_families`, where NAME is the file's. Nothing else names a family; the build lists the files.
struct Family {
  std::string_view model_type;  ///< As config.json has it.
  /// Names in a file may lack it: `transformer.` for gpt_bigcode.
  std::string_view prefix;
  /// Reads the keys that describe the model, `family` already set. Refuses what the engine would compute otherwise.
  void (*read)(const ConfigKeys& keys, ModelConfig& config);
  /// Writes the keys that read() reads, and the name of Transformers' class.
  void (*write)(const ModelConfig& config, nlohmann::ordered_json& object);
  /// Returns the weights in file order.
  std::vector<RoleSpec> (*roles)(const ModelConfig& config);
  /// Returns whether a stored tensor is no weight (masks, tables that are computed).
  bool (*ignores)(std::string_view stored);
  std::vector<SyntheticModel> (*synthetic)();
  const GgufNames* gguf = nullptr;  ///< Null where no GGUF file holds such models.
};

/// Returns all families, by the names of their files.
std::span<const Family* const> families();
/// Returns the family of that model_type. Throws std::invalid_argument with the known ones.
const Family& family_of(std::string_view model_type);

}  // namespace decodelab
