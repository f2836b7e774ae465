// Parses --draft.
#include "bench/plan/named_draft.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/sequences/sequence_slots.h"

namespace decodelab {
namespace {

bool is_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

NamedDraft parse_draft(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && is_name(text.substr(0, equals))) {
    return {.name = text.substr(0, equals), .model = text.substr(equals + 1)};
  }
  const std::size_t last = text.find_last_of("/:");
  return {.name = text.substr(last == std::string::npos ? 0 : last + 1), .model = text};
}

}  // namespace

std::vector<NamedDraft> parse_drafts(std::span<const std::string> flags) {
  std::vector<NamedDraft> drafts;
  for (const std::string& text : flags) {
    NamedDraft draft = parse_draft(text);
    if (!is_name(draft.name) || draft.model.empty()) {
      throw std::invalid_argument(
          fmt::format("--draft '{}': expected NAME=MODEL, the name of letters, digits, '-', '_' and '.'", text));
    }
    if (draft.name == kSelfDraft) {
      throw std::invalid_argument(fmt::format(
          "--draft '{}': {} is the model itself, which needs no --draft; give another name", text, kSelfDraft));
    }
    if (std::ranges::find(drafts, draft.name, &NamedDraft::name) != drafts.end()) {
      throw std::invalid_argument(fmt::format("--draft '{}': there is a draft {} already", text, draft.name));
    }
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

}  // namespace decodelab
