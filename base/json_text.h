// Parses untrusted JSON strictly, and writes millions of rows of JSON fast.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace decodelab {

/// Returns a value for an error message: compact JSON, cut and cleaned like in_quotes() but without quotes around it.
std::string shown(const nlohmann::json& value);

/// Parses one JSON object.
///
/// Throws std::invalid_argument (and no exception of nlohmann's) naming `file_name` for malformed JSON or UTF-8, a
/// number out of range, a key that stands twice in one object, more than 64 levels, or a top level that is no object.
nlohmann::json parse_json_object(std::string_view text, const std::string& file_name);

/// Parses JSON that this program has written. Parsing here rather than by nlohmann's own template compiles the parser
/// once, not in each file. Throws nlohmann::json::parse_error.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);
/// Parses like parse_json(), but returns a discarded value (`is_discarded()`) for what is no JSON.
nlohmann::json parse_json_or_discard(std::string_view text);

/// Throws std::invalid_argument naming `place` for a key of `object` that is not in `known`, since an unknown key could
/// change what the rest means.
void check_keys(const nlohmann::json& object, std::span<const std::string_view> known, const std::string& place);

/// Returns the text as it stands between the quotes of a JSON string. Bytes that are not UTF-8 become U+FFFD.
std::string json_escaped(std::string_view text);

/// Writes JSON objects of one line. Keys and raw texts are appended as they are, so they must need no escaping.
class JsonText final {
 public:
  std::string& text() { return text_; }

  JsonText& raw(std::string_view part) {
    text_.append(part);
    return *this;
  }
  JsonText& number(std::int64_t value) {
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    text_.append(digits, end);
    return *this;
  }
  JsonText& number(std::uint64_t value) {
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    text_.append(digits, end);
    return *this;
  }
  /// Appends the shortest text that reads back as the same value, or null for an infinity or NaN, which JSON lacks.
  JsonText& number(double value) {
    if (!std::isfinite(value)) {
      return raw("null");
    }
    char digits[32];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    text_.append(digits, end);
    return *this;
  }
  /// Appends a time as microseconds with three decimals, exactly.
  JsonText& micros(std::int64_t ns) {
    if (ns < 0) {
      text_ += '-';
      ns = -ns;
    }
    number(ns / 1000);
    const auto rest = static_cast<int>(ns % 1000);
    const char decimals[4] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                              static_cast<char>('0' + rest % 10)};
    text_.append(decimals, sizeof decimals);
    return *this;
  }
  /// Appends one more member to the object that raw() opened: ,"key":value.
  template <typename Number>
  JsonText& member(std::string_view key, Number value) {
    text_ += ",\"";
    text_.append(key);
    text_ += "\":";
    return number(value);
  }

 private:
  std::string text_;
};

}  // namespace decodelab
