// The keys of a config.json, typed: every message names the file, the key, what was expected and what was there.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/kernels/activation.h"

namespace decodelab {

// Upper bounds far beyond any model, and low enough that no product of them overflows 63 bits.
inline constexpr std::int64_t kMaxLayers = std::int64_t{1} << 13;
inline constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxIntermediate = std::int64_t{1} << 23;
inline constexpr std::int64_t kMaxRows = std::int64_t{1} << 26;  ///< Of the vocabulary, and of positions.

/// Reads the keys of one object. A key may have aliases, of which the first that is there counts; another one must
/// agree with it. All functions throw std::invalid_argument for a value of another kind than they return.
class ConfigKeys {
 public:
  using Names = std::initializer_list<const char*>;

  /// Refers to both, which must outlive it; `file_name` is only for messages.
  ConfigKeys(const nlohmann::json& object, const std::string& file_name) : object_(object), file_name_(file_name) {}

  [[noreturn]] void refuse(std::string_view key, const std::string& expected, const std::string& got) const;

  /// Returns the value of the first of `names` that is there, or null.
  const nlohmann::json* find(Names names) const;
  /// Returns whether a key is there with a value that is not null.
  bool has(const char* name) const;

  /// Returns an integer from 1 to `limit`. Without a fallback the key must be there.
  std::int64_t dimension(Names names, std::optional<std::int64_t> fallback, std::int64_t limit) const;
  /// Returns the same for a key that may be null, which stands for the fallback.
  std::int64_t dimension_or_null(Names names, std::int64_t fallback, std::int64_t limit) const;
  bool flag(const char* name, bool fallback) const;
  /// Returns a finite number larger than `above` and smaller than `below`.
  double number(Names names, double fallback, double above, double below) const;
  std::string text(const char* name, std::string_view fallback) const;
  /// Returns the activation of that name: gelu_pytorch_tanh, gelu_new and gelu_fast are the tanh form, gelu and
  /// gelu_python the erf form, silu and swish are one.
  Activation activation(Names names, std::string_view fallback) const;
  /// Returns a token id, of a list the first, or -1 for null. An id outside of the vocabulary never ends a text, and
  /// counts as none.
  std::int64_t token(const char* name, std::int64_t fallback, std::int64_t vocabulary_size) const;
  /// Returns those after the first of a list of token ids that the vocabulary has; none where there is no list.
  std::vector<std::int64_t> later_tokens(const char* name, std::int64_t vocabulary_size) const;
  /// Throws unless the key is absent, null or equal to `value`; `why` says what the value means.
  void require(const char* name, bool value, const std::string& why) const;
  /// Returns the keys of the object at `name`, or nothing where there is none or null.
  std::optional<ConfigKeys> object(const char* name) const;

 private:
  const nlohmann::json& object_;
  const std::string& file_name_;
};

/// Returns the name of an activation as config.json spells it.
std::string_view activation_name(Activation activation);

}  // namespace decodelab
