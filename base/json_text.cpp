// Parses JSON strictly, and escapes texts for it.
#include "base/json_text.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace decodelab {
namespace {

constexpr int kMaxDepth = 64;  // Real files need 5; without a limit a few megabytes of '[' are a denial of service.
constexpr std::size_t kMaxShown = 80;  // Bytes of a hostile name that a message shows.
constexpr std::size_t kMaxReason = 240;

// Follows the parser's events and refuses what the JSON grammar allows and we do not. Throws through the parser.
class StrictCallback {
 public:
  explicit StrictCallback(const std::string& file_name) : file_name_(&file_name) {}

  bool operator()(int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= kMaxDepth) {
        throw std::invalid_argument(fmt::format("{}: JSON nested deeper than {} levels", *file_name_, kMaxDepth));
      }
      if (event == Event::object_start) {
        keys_.emplace_back();
      }
    } else if (event == Event::object_end) {
      keys_.pop_back();
    } else if (event == Event::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) {
        throw std::invalid_argument(fmt::format("{}: the key {} stands twice in one JSON object; write the file again",
                                                *file_name_, in_quotes(key)));
      }
    }
    return true;
  }

 private:
  const std::string* file_name_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

std::string shown(const nlohmann::json& value) {
  return printable_ascii(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kMaxShown);
}

nlohmann::json parse_json_object(std::string_view text, const std::string& file_name) {
  // nlohmann's parser takes a zero byte for the end of the text and does not look at what comes after it.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw std::invalid_argument(fmt::format("{}: expected JSON, got a zero byte at position {}", file_name, zero));
  }
  nlohmann::json result;
  try {
    // The parser copies its callback; the state lives here so that all copies share it.
    StrictCallback strict(file_name);
    result = nlohmann::json::parse(text.begin(), text.end(), std::ref(strict));
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(
        fmt::format("{}: expected JSON, got something else: {}", file_name, printable_ascii(error.what(), kMaxReason)));
  }
  if (!result.is_object()) {
    throw std::invalid_argument(fmt::format("{}: expected a JSON object, got {}", file_name, result.type_name()));
  }
  return result;
}

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }

nlohmann::ordered_json parse_ordered_json(std::string_view text) { return nlohmann::ordered_json::parse(text); }

nlohmann::json parse_json_or_discard(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }

void check_keys(const nlohmann::json& object, std::span<const std::string_view> known, const std::string& place) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) == known.end()) {
      throw std::invalid_argument(
          fmt::format("{}: expected the keys {}, got {}", place, fmt::join(known, ", "), in_quotes(key)));
    }
  }
}

std::string json_escaped(std::string_view text) {
  const std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace decodelab
