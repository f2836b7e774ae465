// Typed access to the keys of a config.json.
#include "engine/checkpoint/config_keys.h"

#include <array>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace decodelab {
namespace {

using nlohmann::json;

struct ActivationName {
  std::string_view name;
  Activation activation;
};
// The first name of an activation is the one that is written. gelu_new and gelu_fast are the tanh approximation with
// another order of operations; gelu_python is the erf one.
constexpr std::array<ActivationName, 8> kActivations{{{"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                      {"gelu_new", Activation::gelu_tanh},
                                                      {"gelu_fast", Activation::gelu_tanh},
                                                      {"gelu", Activation::gelu_erf},
                                                      {"gelu_python", Activation::gelu_erf},
                                                      {"silu", Activation::silu},
                                                      {"swish", Activation::silu},
                                                      {"relu", Activation::relu}}};

}  // namespace

void ConfigKeys::refuse(std::string_view key, const std::string& expected, const std::string& got) const {
  throw std::invalid_argument(fmt::format("{}: key '{}': expected {}, got {}", file_name_, key, expected, got));
}

const json* ConfigKeys::find(Names names) const {
  const json* value = nullptr;
  for (const char* name : names) {
    const auto found = object_.find(name);
    if (found == object_.end()) {
      continue;
    }
    if (value != nullptr && *value != *found) {
      refuse(name, fmt::format("the same as '{}' ({})", *names.begin(), shown(*value)), shown(*found));
    }
    value = &*found;
  }
  return value;
}

bool ConfigKeys::has(const char* name) const {
  const json* value = find({name});
  return value != nullptr && !value->is_null();
}

std::int64_t ConfigKeys::dimension(Names names, std::optional<std::int64_t> fallback, std::int64_t limit) const {
  const json* value = find(names);
  if (value == nullptr && fallback) {
    return *fallback;
  }
  const std::string expected = fmt::format("an integer from 1 to {}", limit);
  if (value == nullptr) {
    refuse(*names.begin(), expected, "none");
  }
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() == 0 ||
      value->get<std::uint64_t>() > static_cast<std::uint64_t>(limit)) {
    refuse(*names.begin(), expected, shown(*value));
  }
  return value->get<std::int64_t>();
}

std::int64_t ConfigKeys::dimension_or_null(Names names, std::int64_t fallback, std::int64_t limit) const {
  const json* value = find(names);
  return value == nullptr || value->is_null() ? fallback : dimension(names, fallback, limit);
}

bool ConfigKeys::flag(const char* name, bool fallback) const {
  const json* value = find({name});
  if (value == nullptr) {
    return fallback;
  }
  if (!value->is_boolean()) {
    refuse(name, "true or false", shown(*value));
  }
  return value->get<bool>();
}

double ConfigKeys::number(Names names, double fallback, double above, double below) const {
  const json* value = find(names);
  if (value == nullptr) {
    return fallback;
  }
  const double number = value->is_number() ? value->get<double>() : above;
  if (!(number > above && number < below)) {
    refuse(*names.begin(), fmt::format("a number between {} and {}", above, below), shown(*value));
  }
  return number;
}

std::string ConfigKeys::text(const char* name, std::string_view fallback) const {
  const json* value = find({name});
  if (value == nullptr) {
    return std::string(fallback);
  }
  if (!value->is_string()) {
    refuse(name, "a text", shown(*value));
  }
  return value->get<std::string>();
}

Activation ConfigKeys::activation(Names names, std::string_view fallback) const {
  const json* value = find(names);
  const json name = value == nullptr ? json(fallback) : *value;
  std::string known_names;
  for (const ActivationName& known : kActivations) {
    if (name == json(known.name)) {
      return known.activation;
    }
    known_names += (known_names.empty() ? "" : ", ") + std::string(known.name);
  }
  refuse(*names.begin(), fmt::format("one of {}", known_names), shown(name));
}

std::int64_t ConfigKeys::token(const char* name, std::int64_t fallback, std::int64_t vocabulary_size) const {
  const json* value = find({name});
  if (value != nullptr && value->is_array()) {
    value = value->empty() ? nullptr : &value->front();
  } else if (value == nullptr) {
    return fallback < vocabulary_size ? fallback : -1;
  }
  if (value == nullptr || value->is_null() || *value == json(-1)) {
    return -1;
  }
  if (!value->is_number_unsigned()) {
    refuse(name, "a token id, a list of them or null", shown(*value));
  }
  return value->get<std::uint64_t>() < static_cast<std::uint64_t>(vocabulary_size) ? value->get<std::int64_t>() : -1;
}

std::vector<std::int64_t> ConfigKeys::later_tokens(const char* name, std::int64_t vocabulary_size) const {
  std::vector<std::int64_t> tokens;
  const json* value = find({name});
  for (std::size_t index = 1; value != nullptr && value->is_array() && index < value->size(); ++index) {
    const json& token = (*value)[index];
    if (!token.is_number_unsigned()) {
      refuse(name, "a token id, a list of them or null", shown(*value));
    }
    if (token.get<std::uint64_t>() < static_cast<std::uint64_t>(vocabulary_size)) {
      tokens.push_back(token.get<std::int64_t>());
    }
  }
  return tokens;
}

void ConfigKeys::require(const char* name, bool value, const std::string& why) const {
  const json* found = find({name});
  if (found != nullptr && !found->is_null() && flag(name, value) != value) {
    refuse(name, fmt::format("{} ({})", value, why), shown(*found));
  }
}

std::optional<ConfigKeys> ConfigKeys::object(const char* name) const {
  const json* value = find({name});
  if (value == nullptr || value->is_null()) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    refuse(name, "an object", shown(*value));
  }
  return ConfigKeys(*value, file_name_);
}

std::string_view activation_name(Activation activation) {
  for (const ActivationName& known : kActivations) {
    if (known.activation == activation) {
      return known.name;
    }
  }
  throw std::logic_error("an activation without a name");
}

}  // namespace decodelab
