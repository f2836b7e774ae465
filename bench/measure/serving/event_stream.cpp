// Reads lines, and keeps what the data lines of an event hold.
#include "bench/measure/serving/event_stream.h"

#include <utility>

namespace decodelab {

void EventStream::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (std::exchange(after_return_, false) && bytes.front() == '\n') {
      ++bytes_;
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (end == std::string_view::npos) {
      bytes_ += bytes.size();
      return;
    }
    bytes_ += end + 1;
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    take_line();
    line_.clear();
  }
}

void EventStream::take_line() {
  if (line_.empty()) {
    if (has_data_) {
      events_.push_back({.data = std::move(data_), .end = bytes_});
    }
    data_.clear();
    has_data_ = false;
    return;
  }
  const std::string_view line = line_;
  const std::size_t colon = line.find(':');
  if (line.substr(0, colon) != "data") {
    return;
  }
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) {
    value.remove_prefix(1);
  }
  if (std::exchange(has_data_, true)) {
    data_ += '\n';
  }
  data_.append(value);
}

}  // namespace decodelab
