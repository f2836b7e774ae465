// Reads one HTTP/1.1 response as its bytes come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace decodelab {

/// Says in half a sentence what a server did instead of answering: `sent a chunk length that is no number ('zz')`.
class HttpError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parses a response (RFC 9112) piece by piece, wherever the pieces are cut.
///
/// The body is framed by `Transfer-Encoding: chunked`, by `Content-Length`, or by the end of the connection. Interim
/// responses (1xx) are skipped; bytes behind the end of the response are left unread. After an HttpError the object is
/// of no use.
class HttpResponse {
 public:
  /// Limits of memory, far above what a server sends: the lines up to the body, one line of them, and the body.
  static constexpr std::size_t kLongestHead = std::size_t{256} << 10;
  static constexpr std::size_t kLongestHeadLine = std::size_t{64} << 10;
  static constexpr std::size_t kLongestBody = std::size_t{256} << 20;

  /// Takes the next bytes. Throws HttpError for what is no response, and for one beyond the limits.
  void feed(std::string_view bytes);
  /// Says that the connection has ended. Throws HttpError, which says what is missing, unless the response is complete.
  void end();

  /// Returns whether the response is complete.
  bool done() const { return state_ == State::done; }
  /// Returns the status code; 0 until the status line has come.
  int status() const { return status_; }
  /// Returns the text behind the status code; may be empty.
  const std::string& reason() const { return reason_; }
  /// Returns the value of a field, whose name is given in small letters; nothing where it was not sent.
  std::optional<std::string_view> field(std::string_view name) const;
  /// Returns as much of the body as has come, without its framing.
  const std::string& body() const { return body_; }

 private:
  enum class State { status, fields, length_body, open_body, chunk_length, chunk, chunk_end, trailer, done };

  void take_line(std::string_view line);
  void take_status(std::string_view line);
  void take_field(std::string_view line);
  void begin_body();
  void take_chunk_length(std::string_view line);
  std::size_t take_body(std::string_view bytes);
  bool reads_lines() const {
    return state_ != State::length_body && state_ != State::open_body && state_ != State::chunk;
  }

  State state_ = State::status;
  std::string line_;  ///< The beginning of the line at hand.
  std::size_t head_bytes_ = 0;
  int status_ = 0;
  std::string reason_;
  std::vector<std::pair<std::string, std::string>> fields_;  ///< Names in small letters.
  std::size_t piece_ = 0;                                    ///< Bytes of the chunk, or of the body of a known length.
  std::size_t left_ = 0;                                     ///< How many of them have not come yet.
  std::string body_;
};

}  // namespace decodelab
