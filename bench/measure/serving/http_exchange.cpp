// Sockets that never block, and one poll() for all of them.
#include "bench/measure/serving/http_exchange.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

namespace decodelab {
namespace {

constexpr std::size_t kReceiveBytes = std::size_t{64} << 10;
constexpr std::int64_t kNsOfOneSecond = 1'000'000'000;

/// Returns the time that is left until `ns`, for ppoll(): its milliseconds would be too coarse for arrivals.
timespec time_until(std::int64_t ns) {
  const std::int64_t left = std::max<std::int64_t>(ns - monotonic_ns(), 0);
  return {.tv_sec = left / kNsOfOneSecond, .tv_nsec = left % kNsOfOneSecond};
}

}  // namespace

std::int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

SocketAddress resolve(const HttpAddress& address) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (error != 0 || found == nullptr) {
    throw HttpError(fmt::format("has a name that leads nowhere, {}: {}", address.host, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  SocketAddress resolved{.size = found->ai_addrlen};
  std::memcpy(&resolved.storage, found->ai_addr, found->ai_addrlen);
  return resolved;
}

std::string http_request(const HttpAddress& address, std::string_view path, std::string_view body) {
  std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: decodelab\r\nConnection: close\r\n",
                                    body.empty() ? "GET" : "POST", path, host_field(address));
  if (!body.empty()) {
    request += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  return request.append("\r\n").append(body);
}

HttpExchange::HttpExchange(HttpExchange&& other) noexcept
    : request_(std::move(other.request_)),
      sent_(other.sent_),
      socket_(std::exchange(other.socket_, -1)),
      connected_(other.connected_),
      begun_(other.begun_),
      response_(std::move(other.response_)),
      arrivals_(std::move(other.arrivals_)),
      error_(std::move(other.error_)) {}

HttpExchange::~HttpExchange() { close_socket(); }

void HttpExchange::close_socket() {
  if (socket_ >= 0) {
    close(socket_);
    socket_ = -1;
  }
}

void HttpExchange::begin(const SocketAddress& address) {
  begun_ = true;
  socket_ = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket_ < 0) {
    error_ = fmt::format("was not asked, since no socket could be made: {}", std::strerror(errno));
    return;
  }
  const int yes = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) {
    connected_ = true;
    send_more();
  } else if (errno != EINPROGRESS) {
    fail(fmt::format("cannot be connected to: {}", std::strerror(errno)));
  }
}

short HttpExchange::events() const {
  // A server may answer, with an error, before it has read all of a request.
  return static_cast<short>(!connected_ ? POLLOUT : sent_ < request_.size() ? POLLOUT | POLLIN : POLLIN);
}

bool HttpExchange::go_on() {
  if (!connected_) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      fail(fmt::format("cannot be connected to: {}", std::strerror(error)));
      return false;
    }
    connected_ = true;
  }
  const bool sent = sent_ < request_.size() && send_more();
  return (socket_ >= 0 && receive_more()) || sent;
}

bool HttpExchange::send_more() {
  bool any = false;
  while (sent_ < request_.size()) {
    const ssize_t count = send(socket_, request_.data() + sent_, request_.size() - sent_, MSG_NOSIGNAL);
    if (count <= 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        sent_ = request_.size();  // It reads no more; its answer, or the lack of one, says why.
      }
      break;
    }
    sent_ += static_cast<std::size_t>(count);
    any = true;
  }
  return any;
}

bool HttpExchange::receive_more() {
  char bytes[kReceiveBytes];
  const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
  const std::int64_t now = monotonic_ns();
  if (count < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      fail(fmt::format("broke the connection: {}", std::strerror(errno)));
    }
    return false;
  }
  const std::size_t before = response_.body().size();
  try {
    if (count == 0) {
      response_.end();
    } else {
      response_.feed(std::string_view(bytes, static_cast<std::size_t>(count)));
    }
  } catch (const HttpError& error) {
    fail(error.what());
  }
  if (response_.body().size() > before) {
    arrivals_.push_back({.ns = now, .bytes = response_.body().size()});
  }
  if (response_.done()) {
    close_socket();
  }
  return true;
}

void HttpExchange::fail(const std::string& why) {
  error_ = why;
  close_socket();
}

std::int64_t run_exchanges(std::vector<HttpExchange>& exchanges, const SocketAddress& address, const SendPlan& plan,
                           std::chrono::milliseconds stall) {
  const std::int64_t stall_ns = std::chrono::nanoseconds(stall).count();
  std::vector<std::size_t> open;  // places in `exchanges`
  std::vector<pollfd> waiting;
  std::size_t next = 0;
  const std::int64_t start = monotonic_ns();
  std::int64_t deadline = start + stall_ns;
  const auto due = [&](std::size_t place) { return start + (plan.after_ns.empty() ? 0 : plan.after_ns[place]); };
  while (next < exchanges.size() || !open.empty()) {
    for (; next < exchanges.size() && open.size() < plan.most_at_once && due(next) <= monotonic_ns(); ++next) {
      if (open.empty()) {
        deadline = monotonic_ns() + stall_ns;
      }
      exchanges[next].begin(address);
      if (!exchanges[next].over()) {
        open.push_back(next);
      }
    }
    const bool waits_for_time = next < exchanges.size() && open.size() < plan.most_at_once;
    waiting.clear();
    for (const std::size_t place : open) {
      waiting.push_back({.fd = exchanges[place].descriptor(), .events = exchanges[place].events(), .revents = 0});
    }
    if (open.empty() && next == exchanges.size()) {
      break;  // None of the last ones could be begun.
    }
    std::int64_t until = open.empty() ? due(next) : deadline;
    if (waits_for_time) {
      until = std::min(until, due(next));
    }
    const timespec left = time_until(until);
    ppoll(waiting.data(), waiting.size(), &left, nullptr);
    for (std::size_t index = 0; index < open.size(); ++index) {
      if (waiting[index].revents != 0 && exchanges[open[index]].go_on()) {
        deadline = monotonic_ns() + stall_ns;
      }
    }
    if (!open.empty() && monotonic_ns() >= deadline) {
      for (const std::size_t place : open) {
        if (!exchanges[place].over()) {
          exchanges[place].fail(fmt::format("sent nothing for {:.3g} s", static_cast<double>(stall.count()) / 1000));
        }
      }
    }
    std::erase_if(open, [&](std::size_t place) { return exchanges[place].over(); });
  }
  return start;
}

HttpResponse exchange_once(const SocketAddress& address, std::string request, std::chrono::milliseconds stall) {
  std::vector<HttpExchange> one;
  one.emplace_back(std::move(request));
  run_exchanges(one, address, {}, stall);
  if (!one.front().error().empty()) {
    throw HttpError(one.front().error());
  }
  return one.front().response();
}

}  // namespace decodelab
