// The keys of rotary embeddings in config.json.
#include "engine/checkpoint/rotary_keys.h"

#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace decodelab {
namespace {

constexpr double kMost = 1e12;
constexpr std::array<std::pair<std::string_view, RotaryScaling>, 4> kRotaryScalings{{{"default", RotaryScaling::none},
                                                                                     {"linear", RotaryScaling::linear},
                                                                                     {"llama3", RotaryScaling::llama3},
                                                                                     {"yarn", RotaryScaling::yarn}}};

RotaryScaling scaling_of(const ConfigKeys& keys, const char* object, const ConfigKeys& scaling) {
  const std::string type = scaling.text(scaling.has("rope_type") ? "rope_type" : "type", "default");
  for (const auto& [name, known] : kRotaryScalings) {
    if (type == name) {
      return known;
    }
  }
  keys.refuse(object, "rotary embeddings of the type default, linear, llama3 or yarn", "'" + type + "'");
}

/// The factor of cosine and sine that Transformers derives where the file names none.
double yarn_attention_factor(const ConfigKeys& keys, double factor) {
  const auto scale_of = [&](double stretch) { return factor <= 1 ? 1.0 : 0.1 * stretch * std::log(factor) + 1.0; };
  if (keys.has("attention_factor")) {
    return keys.number({"attention_factor"}, 1, 0, kMost);
  }
  if (keys.has("mscale") && keys.has("mscale_all_dim")) {
    return scale_of(keys.number({"mscale"}, 1, 0, kMost)) / scale_of(keys.number({"mscale_all_dim"}, 1, 0, kMost));
  }
  return scale_of(1);
}

}  // namespace

RotaryRule read_rotary_rule(const ConfigKeys& keys, double default_theta, std::int64_t dims, std::int64_t positions) {
  const double theta = keys.has("rope_theta") ? keys.number({"rope_theta"}, default_theta, 0, kMost) : default_theta;
  const char* const name = keys.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const std::optional<ConfigKeys> scaling = keys.object(name);
  return scaling ? read_rotary_rule(keys, name, *scaling, theta, dims, positions)
                 : RotaryRule{.theta = theta, .dims = dims};
}

RotaryRule read_rotary_rule(const ConfigKeys& keys, const char* name, const ConfigKeys& scaling, double default_theta,
                            std::int64_t dims, std::int64_t positions) {
  RotaryRule rule{.theta = default_theta, .dims = dims};
  if (scaling.has("rope_theta")) {
    rule.theta = scaling.number({"rope_theta"}, default_theta, 0, kMost);
  }
  rule.scaling = scaling_of(keys, name, scaling);
  if (rule.scaling == RotaryScaling::none) {
    return rule;
  }
  if (!scaling.has("factor")) {
    keys.refuse(name, "a key 'factor'", "none");
  }
  rule.factor = scaling.number({"factor"}, 1, 0, kMost);
  if (rule.scaling != RotaryScaling::linear) {
    rule.original_positions = scaling.dimension({"original_max_position_embeddings"}, positions, kMaxRows);
  }
  if (rule.scaling == RotaryScaling::llama3) {
    rule.low_frequency_factor = scaling.number({"low_freq_factor"}, 1, 0, kMost);
    rule.high_frequency_factor = scaling.number({"high_freq_factor"}, 4, rule.low_frequency_factor, kMost);
  }
  if (rule.scaling == RotaryScaling::yarn) {
    rule.attention_factor = yarn_attention_factor(scaling, rule.factor);
    rule.beta_fast = scaling.number({"beta_fast"}, 32, 0, kMost);
    rule.beta_slow = scaling.number({"beta_slow"}, 1, 0, kMost);
    scaling.require("truncate", true, "the ramp's ends are whole numbers");
  }
  return rule;
}

void write_rotary_rule(const RotaryRule& rule, nlohmann::ordered_json& object) {
  object["rope_theta"] = rule.theta;
  if (rule.scaling == RotaryScaling::none) {
    return;
  }
  nlohmann::ordered_json scaling;
  for (const auto& [name, known] : kRotaryScalings) {
    if (known == rule.scaling) {
      scaling["rope_type"] = name;
    }
  }
  scaling["factor"] = rule.factor;
  if (rule.scaling != RotaryScaling::linear) {
    scaling["original_max_position_embeddings"] = rule.original_positions;
  }
  if (rule.scaling == RotaryScaling::llama3) {
    scaling["low_freq_factor"] = rule.low_frequency_factor;
    scaling["high_freq_factor"] = rule.high_frequency_factor;
  }
  if (rule.scaling == RotaryScaling::yarn) {
    scaling["attention_factor"] = rule.attention_factor;
    scaling["beta_fast"] = rule.beta_fast;
    scaling["beta_slow"] = rule.beta_slow;
  }
  object["rope_scaling"] = scaling;
}

}  // namespace decodelab
