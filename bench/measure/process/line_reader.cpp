// Waits for a descriptor and cuts what comes into lines.
#include "bench/measure/process/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <stdexcept>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace decodelab {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;

}  // namespace

std::optional<std::string> LineReader::next(int timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    if (const std::size_t end = buffer_.find('\n', searched_); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      searched_ = 0;
      return line;
    }
    searched_ = buffer_.size();
    if (buffer_.size() > kLongestLine) {
      throw std::runtime_error(fmt::format("sent more than {} MiB without the end of a line", kLongestLine >> 20));
    }
    if (ended_) {
      return std::nullopt;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready == 0 || (ready < 0 && errno == EINTR)) {
      return std::nullopt;
    }
    std::string chunk(kReadBytes, '\0');
    const ssize_t count = read(descriptor_, chunk.data(), chunk.size());
    if (count > 0) {
      buffer_.append(chunk, 0, static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      ended_ = true;
    }
  }
}

}  // namespace decodelab
