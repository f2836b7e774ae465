// Finds a setting in a label.
#include "reports/statistics/prefix_share.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace decodelab {
namespace {

/// Where the setting begins; npos where it is not there. In values of settings, '@' is doubled.
std::size_t find_setting(std::string_view label) {
  std::size_t at = label.find(kPrefixSetting);
  while (at != std::string_view::npos && at > 0 && label[at - 1] == '@') {
    at = label.find(kPrefixSetting, at + 1);
  }
  return at;
}

std::string_view value_of(std::string_view label, std::size_t at) {
  const std::string_view rest = label.substr(at + kPrefixSetting.size());
  return rest.substr(0, std::min(rest.find('@'), rest.size()));
}

/// The share, and the kind of prompts behind its colon.
std::pair<std::string_view, std::string_view> parts_of(std::string_view value) {
  const std::size_t colon = std::min(value.find(':'), value.size());
  return {value.substr(0, colon), value.substr(std::min(colon + 1, value.size()))};
}

}  // namespace

std::optional<double> prefix_share(std::string_view label) {
  const std::size_t at = find_setting(label);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto [value, kind] = parts_of(value_of(label, at));
  double share = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), share);
  return parsed.ec == std::errc() && parsed.ptr == value.data() + value.size() ? std::optional(share) : std::nullopt;
}

std::string without_prefix_share(std::string_view label) {
  const std::size_t at = find_setting(label);
  if (at == std::string_view::npos) {
    return std::string(label);
  }
  std::string rest(label.substr(0, at));
  const std::string_view value = value_of(label, at);
  rest += label.substr(at + kPrefixSetting.size() + value.size());
  if (const std::string_view kind = parts_of(value).second; !kind.empty()) {
    rest += fmt::format(" ({})", kind);
  }
  return rest;
}

}  // namespace decodelab
