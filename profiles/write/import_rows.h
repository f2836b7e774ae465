// What every importer needs: refusals in one sentence, limits, checked numbers, and the steps of traces made elsewhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "profiles/trace/events.h"

namespace decodelab {

/// Limits of an import. A file with more is refused and not cut, since an analysis of a part would not say that it is
/// one.
struct ImportLimits {
  std::int64_t most_events = 4'000'000;
  std::int64_t most_text_bytes = std::int64_t{1} << 28;  ///< Of all names together.
  std::int64_t most_value_bytes = std::int64_t{1}
                                  << 26;  ///< Of a single value in JSON; our own session is the largest.
};

/// Thrown with one sentence that names the file and what is wrong with it.
struct ImportRefusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The rows of one file while they are read. Every member function throws ImportRefusal.
class ImportedRows final {
 public:
  ImportedRows(const std::filesystem::path& path, const ImportLimits& limits);

  /// Throws the refusal "FILE <what>.".
  [[noreturn]] void refuse(const std::string& what) const;

  /// Counts a row against the limits.
  void count();
  /// Returns the id of a text, which is counted against the limits where it is new.
  StringId text(std::string_view text);
  /// Returns `ns` if a clock may show it, with room for sums. Times a little below 0 are accepted, since the zero of
  /// some files lies inside the capture.
  std::int64_t time(std::int64_t ns) const;
  template <typename Integer>
  Integer number(std::int64_t value, std::string_view what) const {
    if (!std::in_range<Integer>(value)) {
      refuse_number(value, what);
    }
    return static_cast<Integer>(value);
  }

  TraceEvents& events() { return events_; }

 private:
  [[noreturn]] void refuse_number(std::int64_t value, std::string_view what) const;

  std::string file_;
  ImportLimits limits_;
  TraceEvents events_;
  std::int64_t rows_ = 0;
  std::int64_t text_bytes_ = 0;
};

/// Returns what a call does, by the name of the function of CUDA's runtime or driver.
ApiKind api_kind(std::string_view name);

/// Completes a trace that another tool made, after all its rows were added: fills steps from their spans of kind step,
/// the step of every span inside one on the same thread, the bounds of the window, and what the rows say of tier,
/// device and main thread. Where rows begin before time 0, moves all times so that none does.
void complete_foreign(TraceEvents& events);

}  // namespace decodelab
