// Models that guess what another one says, by name.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "engine/checkpoint/model_config.h"

namespace decodelab {

/// Throws std::invalid_argument for a draft that is not among the `known` names; an empty name: the only one is meant.
[[noreturn]] void refuse_draft(const std::string& name, const std::string& known, bool several);

/// Returns the draft of that name, or where it is empty the only one. Throws std::invalid_argument where there is none.
template <typename Draft>
const Draft& draft_named(const std::string& name, const std::map<std::string, Draft>& drafts) {
  const auto found = name.empty() && drafts.size() == 1 ? drafts.begin() : drafts.find(name);
  if (found != drafts.end()) {
    return found->second;
  }
  std::string known;
  for (const auto& [other, draft] : drafts) {
    known += (known.empty() ? "" : ", ") + other;
  }
  refuse_draft(name, known, drafts.size() > 1);
}

/// Throws std::invalid_argument unless the draft can guess what the model says: both are decoders alone, with one
/// vocabulary.
void check_draft(const ModelConfig& model, const ModelConfig& draft);

}  // namespace decodelab
