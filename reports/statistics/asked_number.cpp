// Finds a setting in a label.
#include "reports/statistics/asked_number.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace decodelab {
namespace {

/// Where the setting begins; npos where it is not there. In values of settings, '@' is doubled.
std::size_t find_setting(std::string_view label, std::string_view setting) {
  std::size_t at = label.find(setting);
  while (at != std::string_view::npos && at > 0 && label[at - 1] == '@') {
    at = label.find(setting, at + 1);
  }
  return at;
}

/// Returns what stands from there to the next setting.
std::string_view value_from(std::string_view label, std::size_t at) {
  const std::string_view rest = label.substr(at);
  return rest.substr(0, std::min(rest.find('@'), rest.size()));
}

/// The number, and what stands behind its colon.
std::pair<std::string_view, std::string_view> parts_of(std::string_view value) {
  const std::size_t colon = std::min(value.find(':'), value.size());
  return {value.substr(0, colon), value.substr(std::min(colon + 1, value.size()))};
}

}  // namespace

std::optional<double> asked_number(std::string_view label, std::string_view setting) {
  const std::size_t at = find_setting(label, setting);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto [value, kind] = parts_of(value_from(label, at + setting.size()));
  double number = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == value.data() + value.size() ? std::optional(number) : std::nullopt;
}

std::string without_asked(std::string_view label, std::string_view setting) {
  const std::size_t at = find_setting(label, setting);
  if (at == std::string_view::npos) {
    return std::string(label);
  }
  std::string rest(label.substr(0, at));
  const std::string_view value = value_from(label, at + setting.size());
  rest += label.substr(at + setting.size() + value.size());
  if (const std::string_view kind = parts_of(value).second; !kind.empty()) {
    rest += fmt::format(" ({})", kind);
  }
  return rest;
}

}  // namespace decodelab
