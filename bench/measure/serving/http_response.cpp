// A state machine over lines and counted bytes.
#include "bench/measure/serving/http_response.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"

namespace decodelab {
namespace {

constexpr int kFirstFinalStatus = 200;
constexpr int kNoContent = 204;
constexpr int kNotModified = 304;
constexpr int kHexadecimal = 16;

std::string small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return small;
}

/// Returns the number that the whole text spells with digits alone.
std::optional<std::size_t> digits_only(std::string_view text, int base) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  // A number that is too large is one that no limit allows.
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) {
    return std::numeric_limits<std::size_t>::max();
  }
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

void HttpResponse::feed(std::string_view bytes) {
  while (!bytes.empty() && !done()) {
    if (!reads_lines()) {
      bytes.remove_prefix(take_body(bytes));
      continue;
    }
    const std::size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (line_.size() > kLongestHeadLine) {
      throw HttpError(fmt::format("sent a line of more than {} KiB in its head", kLongestHeadLine >> 10));
    }
    if (end == std::string_view::npos) {
      return;
    }
    bytes.remove_prefix(end + 1);
    std::string line = std::move(line_);
    line_.clear();
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    take_line(line);
  }
}

void HttpResponse::take_line(std::string_view line) {
  if (state_ != State::chunk_length && state_ != State::chunk_end) {
    head_bytes_ += line.size() + 1;
    if (head_bytes_ > kLongestHead) {
      throw HttpError(fmt::format("sent more than {} KiB of header fields", kLongestHead >> 10));
    }
  }
  switch (state_) {
    case State::status: take_status(line); break;
    case State::fields:
      if (line.empty()) {
        begin_body();
      } else {
        take_field(line);
      }
      break;
    case State::chunk_length: take_chunk_length(line); break;
    case State::chunk_end:
      if (!line.empty()) {
        throw HttpError(fmt::format("sent more than the {} bytes that a chunk should have", piece_));
      }
      state_ = State::chunk_length;
      break;
    case State::trailer:
      if (line.empty()) {
        state_ = State::done;
      }
      break;
    default: break;  // No line is read there.
  }
}

void HttpResponse::take_status(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr std::size_t kCodeAt = 9;  // behind "HTTP/1.1 "
  const auto code = line.starts_with(kVersion) && line.size() >= kCodeAt + 3 && line[kCodeAt - 1] == ' '
                        ? digits_only(line.substr(kCodeAt, 3), 10)
                        : std::nullopt;
  const std::string_view behind = code ? line.substr(kCodeAt + 3) : "";
  if (!code || *code < 100 || (!behind.empty() && behind.front() != ' ')) {
    throw HttpError(fmt::format("sent what is no HTTP/1.1 status line: {}", in_quotes(line)));
  }
  status_ = static_cast<int>(*code);
  reason_ = printable_ascii(trimmed(behind), kOutsideText);
  state_ = State::fields;
}

void HttpResponse::take_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || line.find_first_of(" \t") < colon) {
    throw HttpError(fmt::format("sent what is no header field: {}", in_quotes(line)));
  }
  fields_.emplace_back(small_letters(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
}

void HttpResponse::begin_body() {
  if (status_ < kFirstFinalStatus) {
    fields_.clear();
    state_ = State::status;
    return;
  }
  if (status_ == kNoContent || status_ == kNotModified) {
    state_ = State::done;
    return;
  }
  if (const auto coding = field("transfer-encoding")) {
    if (small_letters(*coding) != "chunked") {
      throw HttpError(fmt::format("sent its body in the coding {}; expected chunked", in_quotes(*coding)));
    }
    state_ = State::chunk_length;
    return;
  }
  const auto length = field("content-length");
  if (!length) {
    state_ = State::open_body;
    return;
  }
  const auto bytes = digits_only(*length, 10);
  const bool differs = std::ranges::any_of(
      fields_, [&](const auto& other) { return other.first == "content-length" && other.second != *length; });
  if (!bytes || differs) {
    throw HttpError(fmt::format("sent a Content-Length that is no number ({})", in_quotes(*length)));
  }
  if (*bytes > kLongestBody) {
    throw HttpError(
        fmt::format("announced a body of {} bytes, and {} MiB are the most that is read", *length, kLongestBody >> 20));
  }
  piece_ = left_ = *bytes;
  state_ = left_ == 0 ? State::done : State::length_body;
}

void HttpResponse::take_chunk_length(std::string_view line) {
  const std::string_view digits = trimmed(line.substr(0, line.find(';')));
  const auto bytes = digits_only(digits, kHexadecimal);
  if (!bytes) {
    throw HttpError(fmt::format("sent a chunk length that is no number ({})", in_quotes(line)));
  }
  if (*bytes > kLongestBody - std::min(body_.size(), kLongestBody)) {
    throw HttpError(fmt::format("announced a chunk of {} bytes (hexadecimal), and {} MiB are the most that is read",
                                digits.substr(0, kOutsideText), kLongestBody >> 20));
  }
  piece_ = left_ = *bytes;
  state_ = left_ == 0 ? State::trailer : State::chunk;
}

std::size_t HttpResponse::take_body(std::string_view bytes) {
  if (state_ == State::open_body) {
    if (bytes.size() > kLongestBody - std::min(body_.size(), kLongestBody)) {
      throw HttpError(fmt::format("sent a body of more than {} MiB", kLongestBody >> 20));
    }
    body_.append(bytes);
    return bytes.size();
  }
  const std::size_t taken = std::min(left_, bytes.size());
  body_.append(bytes.substr(0, taken));
  left_ -= taken;
  if (left_ == 0) {
    state_ = state_ == State::chunk ? State::chunk_end : State::done;
  }
  return taken;
}

void HttpResponse::end() {
  switch (state_) {
    case State::done: return;
    case State::open_body: state_ = State::done; return;
    case State::status:
      throw HttpError(status_ == 0 && line_.empty() ? "closed the connection without an answer"
                                                    : "closed the connection within the status line");
    case State::fields: throw HttpError("closed the connection before the end of the header fields");
    case State::length_body:
    case State::chunk:
      throw HttpError(fmt::format("closed the connection after {} of the {} bytes of {}", piece_ - left_, piece_,
                                  state_ == State::chunk ? "a chunk" : "its body"));
    default: throw HttpError("closed the connection before the last chunk, which ends the body");
  }
}

std::optional<std::string_view> HttpResponse::field(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &std::pair<std::string, std::string>::first);
  return found == fields_.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

}  // namespace decodelab
