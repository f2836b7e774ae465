// Texts of a trace, each once.
#include "profiles/trace/events.h"

namespace decodelab {

TraceStrings::TraceStrings() { id(""); }

TraceStrings::TraceStrings(const TraceStrings& other) {
  ids_.reserve(other.size());
  for (const std::string& text : other.texts_) {
    id(text);
  }
}

TraceStrings& TraceStrings::operator=(const TraceStrings& other) {
  if (this != &other) {
    *this = TraceStrings(other);
  }
  return *this;
}

StringId TraceStrings::id(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) {
    return found->second;
  }
  const auto next = static_cast<StringId>(texts_.size());
  texts_.emplace_back(text);
  ids_.emplace(texts_.back(), next);
  return next;
}

}  // namespace decodelab
