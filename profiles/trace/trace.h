// A sealed trace: rows in order, joined with one another, and never changed again.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/trace/events.h"

namespace decodelab {

/// A line from the call that launched an operation to the operation.
struct Flow {
  std::int64_t api_row = kNoRow;
  std::int64_t operation_row = kNoRow;
};

/// Holds rows sorted by start (longer first at ties), with `depth`, `lane`, `step`, `layer`, `stage`, `api_row` and the
/// devices' bounds of steps filled in. Spans that name no step, layer or stage have those of the span around them; an
/// operation whose launch nobody recorded keeps what its collector said. Steps that the window cuts have a reason to be
/// left out. Rows that contradict each other are kept as they are; the verifier reports them.
class Trace {
 public:
  const TraceEvents& events() const { return events_; }
  const std::vector<Flow>& flows() const { return flows_; }
  const std::string& text(StringId id) const { return events_.strings.text(id); }

 private:
  friend Trace seal(TraceEvents events);
  TraceEvents events_;
  std::vector<Flow> flows_;
};

Trace seal(TraceEvents events);

}  // namespace decodelab
