// Cuts a body of type text/event-stream into its events as the bytes come.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

struct StreamEvent {
  std::string data;     ///< Of its `data:` lines, with '\n' between them.
  std::size_t end = 0;  ///< How many bytes of the stream had come when the event was complete.
};

/// Parses server-sent events (HTML Standard, 9.2), wherever the bytes are cut. Lines end with LF, CR LF or CR;
/// comments, fields other than `data` and events without data are skipped.
class EventStream {
 public:
  /// Takes the next bytes, and adds the events that they complete to events().
  void feed(std::string_view bytes);
  const std::vector<StreamEvent>& events() const { return events_; }
  /// Returns whether bytes of an event that is not complete have come.
  bool within_event() const { return has_data_ || !line_.empty(); }

 private:
  void take_line();

  std::vector<StreamEvent> events_;
  std::size_t bytes_ = 0;
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool after_return_ = false;  ///< The byte before was CR: an LF behind it belongs to the same line end.
};

}  // namespace decodelab
