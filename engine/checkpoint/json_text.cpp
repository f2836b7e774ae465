// Reads JSON that nobody vouched for: depth-limited, no duplicate keys, and errors that name the file.
#include "engine/checkpoint/json_text.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <system_error>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace decodelab {
namespace {

constexpr int kMaxDepth = 64;  // Real files need 5; without a limit a few megabytes of '[' are a denial of service.
constexpr std::size_t kMaxShown = 80;  // What of a hostile name is worth a line.
constexpr std::size_t kMaxReason = 240;

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (result.size() >= limit) {
      return result + "...";
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7f) {
      result += text[i];
    } else {
      result += fmt::format("\\x{:02x}", byte);
    }
  }
  return result;
}

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

std::string in_quotes(std::string_view text) { return "'" + printable(text, kMaxShown) + "'"; }

std::string shown(const nlohmann::json& value) {
  return printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kMaxShown);
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
        fmt::format("{}: expected JSON, got something else: {}", file_name, printable(error.what(), kMaxReason)));
  }
  if (!result.is_object()) {
    throw std::invalid_argument(fmt::format("{}: expected a JSON object, got {}", file_name, result.type_name()));
  }
  return result;
}

void check_keys(const nlohmann::json& object, std::span<const std::string_view> known, const std::string& place) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) == known.end()) {
      throw std::invalid_argument(
          fmt::format("{}: expected the keys {}, got {}", place, fmt::join(known, ", "), in_quotes(key)));
    }
  }
}

std::string read_text_file(const std::filesystem::path& file, std::uintmax_t limit_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) {
    throw std::invalid_argument(fmt::format("{}: no such file", file.string()));
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw std::invalid_argument(fmt::format("{}: expected a file, got a directory or a device", file.string()));
  }
  const auto size = std::filesystem::file_size(file, error);
  if (error) {
    throw std::runtime_error(fmt::format("{}: cannot be read: {}", file.string(), error.message()));
  }
  if (size > limit_bytes) {
    throw std::invalid_argument(
        fmt::format("{}: expected at most {} bytes, got {}; is it the right file?", file.string(), limit_bytes, size));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(size));
  if (!stream || stream.gcount() != static_cast<std::streamsize>(size)) {
    throw std::runtime_error(fmt::format("{}: cannot be read; check its permissions", file.string()));
  }
  return text;
}

}  // namespace decodelab
