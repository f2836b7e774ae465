// Cuts a URL into its parts.
#include "bench/measure/serving/http_address.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "base/text.h"

namespace decodelab {
namespace {

constexpr std::string_view kHttpScheme = "http://";

[[noreturn]] void refuse_url(std::string_view flag, std::string_view text, const std::string& why) {
  throw std::invalid_argument(
      fmt::format("{} {}: {}; expected http://HOST:PORT, as in http://127.0.0.1:8080", flag, in_quotes(text), why));
}

/// Visible ASCII without what ends a path or begins another part.
bool is_plain(unsigned char c) { return c > ' ' && c < 0x7f && c != '?' && c != '#' && c != '"' && c != '\\'; }

}  // namespace

HttpAddress parse_http_address(std::string_view flag, std::string_view text) {
  if (!text.starts_with(kHttpScheme)) {
    refuse_url(flag, text, "it does not begin with http://, the one scheme that is spoken");
  }
  if (!std::ranges::all_of(text, is_plain)) {
    refuse_url(flag, text, "it has a blank, a query or a character that no path has");
  }
  const std::string_view rest = text.substr(kHttpScheme.size());
  const std::string_view place = rest.substr(0, rest.find('/'));
  HttpAddress address{.host = {}, .path = std::string(rest.substr(place.size()))};
  address.path.erase(address.path.find_last_not_of('/') + 1);
  if (place.find('@') != std::string_view::npos) {
    refuse_url(flag, text, "it names a user, and requests are sent without one");
  }
  const bool bracket = place.starts_with('[');
  const std::size_t host_end = bracket ? place.find(']') : place.find(':');
  if (bracket && host_end == std::string_view::npos) {
    refuse_url(flag, text, "the bracket of its host is not closed");
  }
  address.host = bracket ? place.substr(1, host_end - 1) : place.substr(0, host_end);
  if (address.host.empty()) {
    refuse_url(flag, text, "it has no host");
  }
  const std::string_view behind = host_end == std::string_view::npos ? "" : place.substr(host_end + (bracket ? 1 : 0));
  if (!behind.empty()) {
    const auto port = behind.starts_with(':') ? whole_number(behind.substr(1)) : std::nullopt;
    if (!port || *port < 1 || *port > std::numeric_limits<std::uint16_t>::max()) {
      refuse_url(flag, text, "its port is no number from 1 to 65535");
    }
    address.port = static_cast<std::uint16_t>(*port);
  }
  return address;
}

std::string host_field(const HttpAddress& address) {
  const bool six = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", six ? "[" : "", address.host, six ? "]" : "", address.port);
}

std::string to_string(const HttpAddress& address) {
  return fmt::format("{}{}{}", kHttpScheme, host_field(address), address.path);
}

}  // namespace decodelab
