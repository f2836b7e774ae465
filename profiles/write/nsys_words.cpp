// Matches texts by what versions of nsys write.
#include "profiles/write/nsys_words.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "profiles/write/rows.h"

namespace decodelab {
namespace {

std::optional<std::int32_t> number_after(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) {
    return std::nullopt;
  }
  const auto number = whole_number(text.substr(word.size()));
  return number && std::in_range<std::int32_t>(*number) && *number >= 0
             ? std::optional(static_cast<std::int32_t>(*number))
             : std::nullopt;
}

}  // namespace

RangeMeaning meaning_of(std::string_view text) {
  for (const char* word : {"step ", "ProfilerStep#", "step", "decode_step "}) {
    if (const auto number = number_after(text, word)) {
      return {.kind = SpanKind::step, .number = *number};
    }
  }
  if (text == "step") {
    return {.kind = SpanKind::step};
  }
  if (const auto number = number_after(text, "layer ")) {
    return {.kind = SpanKind::layer, .number = *number};
  }
  if (text.starts_with("aten::")) {
    return {.kind = SpanKind::operator_call};
  }
  if (const auto stage = named<Stage>(kStageNames, text); stage && *stage != Stage::other) {
    return {.kind = SpanKind::stage, .stage = *stage};
  }
  return {};
}

OverheadKind overhead_kind(std::string_view name) {
  static constexpr std::array<std::pair<const char*, OverheadKind>, 9> kWords{
      {{"ull", OverheadKind::command_buffer_full},
       {"equest", OverheadKind::buffer_request},
       {"lush", OverheadKind::buffer_flush},
       {"azy", OverheadKind::lazy_function_loading},
       {"odule", OverheadKind::module_loading},
       {"ompiler", OverheadKind::driver_compiler},
       {"esource", OverheadKind::resource},
       {"nified", OverheadKind::unified_memory},
       {"UVM", OverheadKind::unified_memory}}};
  for (const auto& [word, kind] : kWords) {
    if (name.find(word) != std::string_view::npos) {
      return kind;
    }
  }
  return OverheadKind::instrumentation;
}

}  // namespace decodelab
