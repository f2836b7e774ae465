// Finds a setting in a label.
#include "reports/statistics/prefix_share.h"

#include <algorithm>
#include <charconv>

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

}  // namespace

std::optional<double> prefix_share(std::string_view label) {
  const std::size_t at = find_setting(label);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view value = value_of(label, at);
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
  rest += label.substr(at + kPrefixSetting.size() + value_of(label, at).size());
  return rest;
}

}  // namespace decodelab
