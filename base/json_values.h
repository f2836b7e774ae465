// Values of JSON that may be missing.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

namespace decodelab {

/// Returns `value`, or null where there is none.
template <typename Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace decodelab
