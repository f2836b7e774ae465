// One event of a kineto file as its parser collects it, whatever types its members have.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace decodelab {

/// A number or a text, or neither where the file has something else.
struct KinetoValue {
  std::optional<std::int64_t> number;
  std::optional<double> real;
  std::string text;
};

struct KinetoEvent {
  std::string phase;
  std::string category;
  std::string name;
  std::optional<std::int64_t> process;
  std::optional<std::int64_t> thread;
  std::optional<std::int64_t> start_ns;  ///< Relative to the file's base.
  std::optional<std::int64_t> duration_ns;
  std::unordered_map<std::string, KinetoValue> arguments;
  std::array<std::int64_t, 3> grid{};
  std::array<std::int64_t, 3> block{};

  std::int64_t number(const std::string& key, std::int64_t otherwise = 0) const {
    const auto found = arguments.find(key);
    return found == arguments.end() ? otherwise : found->second.number.value_or(otherwise);
  }
  std::string_view text(const std::string& key) const {
    const auto found = arguments.find(key);
    return found == arguments.end() ? std::string_view() : std::string_view(found->second.text);
  }
  bool has_number(const std::string& key) const {
    const auto found = arguments.find(key);
    return found != arguments.end() && found->second.number.has_value();
  }
};

/// The members of a file that precede its events.
struct KinetoHead {
  std::optional<std::int64_t> base_ns;
  std::string session_text;  ///< Our own session; empty in files that other tools wrote.
};

/// Converts microseconds, as a file writes them, to ns. Returns nothing where the text is no number or no time.
std::optional<std::int64_t> micros_to_ns(std::string_view text);

}  // namespace decodelab
