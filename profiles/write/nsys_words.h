// What the texts in nsys' exports mean: ranges and overheads by their names.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiles/trace/events.h"

namespace decodelab {

/// What a range of an NVTX file is for, by its text.
struct RangeMeaning {
  SpanKind kind = SpanKind::other;
  Stage stage = Stage::other;
  std::int32_t number = -1;
};

/// Returns what a range is for: a step, a layer, an operator, a stage, or something else.
RangeMeaning meaning_of(std::string_view text);

/// Returns the kind that CUPTI's name of an overhead stands for; `instrumentation` for an unknown name.
OverheadKind overhead_kind(std::string_view name);

}  // namespace decodelab
