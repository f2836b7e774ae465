// Where a server listens: the parts of a URL such as http://127.0.0.1:8080/v1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace decodelab {

struct HttpAddress {
  std::string host;  ///< A name, an IPv4 address, or an IPv6 address without its brackets.
  std::uint16_t port = 80;
  std::string path{};  ///< Of the URL, without a slash at its end: `/v1`; empty for the root.

  bool operator==(const HttpAddress&) const = default;
};

/// Parses `http://HOST[:PORT][/PATH]`. Throws std::invalid_argument in one sentence, naming `flag`, for another scheme,
/// no host, a port outside of 1 to 65535, a user or a query, and characters that a request line cannot hold.
HttpAddress parse_http_address(std::string_view flag, std::string_view text);

/// Returns `http://HOST:PORT/PATH`.
std::string to_string(const HttpAddress& address);

/// Returns `HOST:PORT`, as the field Host of a request has it.
std::string host_field(const HttpAddress& address);

}  // namespace decodelab
