// One request and its response over a TCP connection of their own, with the time at which each piece came.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "bench/measure/serving/http_address.h"
#include "bench/measure/serving/http_response.h"

namespace decodelab {

/// Returns nanoseconds of the monotonic clock.
std::int64_t monotonic_ns();

/// Where a name leads: what connect() needs.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};
/// Looks a host up. Throws HttpError for one that nobody knows.
SocketAddress resolve(const HttpAddress& address);

/// Returns the bytes of a request that asks the server to close the connection behind its response. `body` makes it a
/// POST of JSON; without one it is a GET. `path` begins with a slash.
std::string http_request(const HttpAddress& address, std::string_view path, std::string_view body = {});

/// Holds one request on its way; what went wrong is kept in error(), not thrown.
///
/// The socket never blocks and sends without delay (TCP_NODELAY). Bytes are stamped when they are read, before they are
/// looked at, and only framed until the response is complete: what they mean is for later.
class HttpExchange {
 public:
  /// A read that brought something of the body.
  struct Arrival {
    std::int64_t ns = 0;    ///< By monotonic_ns().
    std::size_t bytes = 0;  ///< How much of the body had come then.
  };

  explicit HttpExchange(std::string request) : request_(std::move(request)) {}
  ~HttpExchange();
  HttpExchange(HttpExchange&& other) noexcept;
  HttpExchange& operator=(HttpExchange&&) = delete;

  /// Opens the connection.
  void begin(const SocketAddress& address);
  /// Returns whether begin() was called.
  bool begun() const { return begun_; }
  /// Returns whether there is nothing left to wait for: the response is complete, or there is an error.
  bool over() const { return begun() && socket_ < 0; }
  int descriptor() const { return socket_; }
  /// Returns what poll() should wait for.
  short events() const;
  /// Goes on after poll() said that the socket is ready. Returns whether bytes were sent or received.
  bool go_on();
  /// Gives the exchange up for this reason.
  void fail(const std::string& why);

  const HttpResponse& response() const { return response_; }
  /// Returns what went wrong, in half a sentence without its subject, the server; empty where nothing did.
  const std::string& error() const { return error_; }
  const std::vector<Arrival>& arrivals() const { return arrivals_; }

 private:
  bool send_more();
  bool receive_more();
  void close_socket();

  std::string request_;
  std::size_t sent_ = 0;
  int socket_ = -1;
  bool connected_ = false;
  bool begun_ = false;
  HttpResponse response_;
  std::vector<Arrival> arrivals_;
  std::string error_;
};

/// When exchanges are begun.
struct SendPlan {
  std::size_t most_at_once = 1;
  std::vector<std::int64_t> after_ns{};  ///< For each, how long after the start, ascending; empty: at the start.
};

/// Runs exchanges over sockets of their own until all are over, and returns the time of the start by monotonic_ns().
///
/// Where no byte moves on any connection for `stall`, all that are open fail.
std::int64_t run_exchanges(std::vector<HttpExchange>& exchanges, const SocketAddress& address, const SendPlan& plan,
                           std::chrono::milliseconds stall);

/// Runs one exchange. Throws HttpError where it fails.
HttpResponse exchange_once(const SocketAddress& address, std::string request, std::chrono::milliseconds stall);

}  // namespace decodelab
