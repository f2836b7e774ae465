// A server on a thread of the test, which answers as its script says.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/measure/serving/http_address.h"

namespace decodelab::testing {

/// One connection, whose request was read.
class FakeConnection {
 public:
  FakeConnection(int socket, std::string request) : socket_(socket), request_(std::move(request)) {}

  std::string path() const {
    const std::size_t begin = request_.find(' ') + 1;
    return request_.substr(begin, request_.find(' ', begin) - begin);
  }
  nlohmann::json body() const {
    return nlohmann::json::parse(request_.substr(request_.find("\r\n\r\n") + 4), nullptr, false);
  }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) {
        return;
      }
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  /// Waits until the client has closed the connection, for tests of silence.
  void wait_for_the_client() const {
    char byte = 0;
    while (recv(socket_, &byte, 1, 0) > 0) {
    }
  }

 private:
  int socket_;
  std::string request_;
};

class FakeServer {
 public:
  using Script = std::function<void(const FakeConnection&)>;

  /// Calls `script` for each connection, on a thread of its own, and closes the connection behind it.
  explicit FakeServer(Script script) : script_(std::move(script)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    auto* const address = reinterpret_cast<sockaddr*>(&any);
    constexpr int kBacklog = 1024;
    if (bind(listener_, address, size) != 0 || listen(listener_, kBacklog) != 0 ||
        getsockname(listener_, address, &size) != 0) {
      throw std::runtime_error("no fake server could be made");
    }
    address_ = {.host = "127.0.0.1", .port = ntohs(any.sin_port)};
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~FakeServer() {
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    close(listener_);
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  const HttpAddress& address() const { return address_; }

 private:
  void accept_all() {
    for (int socket = accept(listener_, nullptr, nullptr); socket >= 0; socket = accept(listener_, nullptr, nullptr)) {
      threads_.emplace_back([this, socket] {
        script_(FakeConnection(socket, request_of(socket)));
        // A close with bytes unread would reset the connection, and take the reply with it.
        shutdown(socket, SHUT_WR);
        char rest[512];
        while (recv(socket, rest, sizeof rest, 0) > 0) {
        }
        close(socket);
      });
    }
  }

  static std::string request_of(int socket) {
    std::string request;
    std::size_t wanted = std::string::npos;
    while (request.size() < wanted) {
      char bytes[4096];
      const ssize_t count = recv(socket, bytes, sizeof bytes, 0);
      if (count <= 0) {
        break;
      }
      request.append(bytes, static_cast<std::size_t>(count));
      const std::size_t head = request.find("\r\n\r\n");
      if (head != std::string::npos && wanted == std::string::npos) {
        constexpr std::string_view kLength = "Content-Length: ";
        const std::size_t length = request.find(kLength);
        wanted = head + 4 + (length < head ? std::stoul(request.substr(length + kLength.size())) : 0);
      }
    }
    return request;
  }

  Script script_;
  int listener_ = -1;
  HttpAddress address_;
  std::thread accepting_;
  std::list<std::thread> threads_;
};

inline std::string chunk_of(std::string_view bytes) { return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

inline std::string with_length(std::string_view body, std::string_view status = "200 OK") {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
                     body.size(), body);
}

inline constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

/// The event of some tokens, as each form has it. `total` is how many the completion has then.
inline std::string openai_event(const std::vector<std::int64_t>& ids, const char* finish = nullptr) {
  nlohmann::json choice{{"index", 0}, {"text", "x"}, {"token_ids", ids}, {"finish_reason", nullptr}};
  if (finish != nullptr) {
    choice["finish_reason"] = finish;
  }
  return fmt::format("data: {}\n\n", nlohmann::json{{"choices", nlohmann::json::array({choice})}}.dump());
}
inline std::string openai_usage(std::int64_t tokens) {
  return fmt::format("data: {{\"choices\":[],\"usage\":{{\"completion_tokens\":{}}}}}\n\n", tokens);
}
inline constexpr std::string_view kOpenAiDone = "data: [DONE]\n\n";

inline std::string llama_event(const std::vector<std::int64_t>& ids, std::int64_t total) {
  return fmt::format(
      "data: {}\n\n",
      nlohmann::json{{"content", "x"}, {"tokens", ids}, {"stop", false}, {"tokens_predicted", total}}.dump());
}
inline std::string llama_end(std::int64_t total, const char* why = "limit") {
  return fmt::format("data: {}\n\n", nlohmann::json{{"content", ""},
                                                    {"tokens", nlohmann::json::array()},
                                                    {"stop", true},
                                                    {"stop_type", why},
                                                    {"tokens_predicted", total}}
                                         .dump());
}

/// The whole reply of a stream with these ids, one event each.
inline std::string openai_reply(const std::vector<std::int64_t>& ids) {
  std::string reply(kStreamHead);
  for (const std::int64_t id : ids) {
    reply += chunk_of(openai_event({id}, id == ids.back() ? "length" : nullptr));
  }
  reply += chunk_of(openai_usage(std::ssize(ids)));
  return reply + chunk_of(kOpenAiDone) + std::string(kLastChunk);
}

/// The next id after one, as the fake model has it.
inline std::int64_t ruled_id(std::int64_t id) { return (7 * id + 3) % 97; }

/// The ids that it says behind a prompt.
inline std::vector<std::int64_t> ruled_ids(const std::vector<std::int64_t>& prompt, std::int64_t tokens) {
  std::vector<std::int64_t> ids;
  std::int64_t last = prompt.back();
  for (std::int64_t token = 0; token < tokens; ++token) {
    ids.push_back(last = ruled_id(last));
  }
  return ids;
}

}  // namespace decodelab::testing
