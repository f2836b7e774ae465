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

/// More than this is refused, not cut: an analysis of a part would not say so.
struct ImportLimits {
  std::int64_t most_events = 4'000'000;
  std::int64_t most_text_bytes = std::int64_t{1} << 28;  ///< Of all names together.
};

/// One sentence that names the file and what is wrong with it.
struct ImportRefusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The rows of one file while they are read. Every member function throws ImportRefusal.
class ImportedRows final {
 public:
  ImportedRows(const std::filesystem::path& path, const ImportLimits& limits);

  /// "FILE <what>."
  [[noreturn]] void refuse(const std::string& what) const;

  /// Counts a row against the limits.
  void count();
  /// The id of a text, counted against the limits where it is new.
  StringId text(std::string_view text);
  /// A time that a clock may show, with room for sums: a little below 0 too, as files have it whose zero lies in the
  /// capture.
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

/// What a call does, by the names of CUDA's runtime and driver.
ApiKind api_kind(std::string_view name);

/// For traces of others, after all rows are there: steps from their spans of kind step, the step of every span inside
/// one on the same thread, the bounds of the window, and what the rows say of tier, device and main thread. Where rows
/// begin before time 0, all times are moved so that none does.
void complete_foreign(TraceEvents& events);

}  // namespace decodelab
