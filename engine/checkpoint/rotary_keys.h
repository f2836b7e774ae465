// Reads how a model turns its positions from config.json, in the old and in the new spelling.
#pragma once

#include "engine/checkpoint/config_keys.h"
#include "engine/checkpoint/rotary_rule.h"

namespace decodelab {

/// Returns the rule of `keys`: `rope_parameters` (Transformers 5) or `rope_theta` with `rope_scaling`; `positions` is
/// the model's limit. Refuses types other than default, linear, llama3 and yarn by name.
RotaryRule read_rotary_rule(const ConfigKeys& keys, double default_theta, std::int64_t dims, std::int64_t positions);

/// Returns the rule of the object `scaling`, which stands in `keys` at `name`: the same, but for keys beside it.
RotaryRule read_rotary_rule(const ConfigKeys& keys, const char* name, const ConfigKeys& scaling, double default_theta,
                            std::int64_t dims, std::int64_t positions);

/// Writes the rule as `rope_theta` and, where it is scaled, `rope_scaling`.
void write_rotary_rule(const RotaryRule& rule, nlohmann::ordered_json& object);

}  // namespace decodelab
