// Matches texts by what versions of nsys write.
#include "profiles/write/nsys_words.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "profiles/write/rows.h"

namespace decodelab {
namespace {

std::optional<std::int32_t> number_after(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) {
    return std::nullopt;
  }
  text.remove_prefix(word.size());
  std::int32_t number = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || last != text.data() + text.size() || number < 0) {
    return std::nullopt;
  }
  return number;
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
