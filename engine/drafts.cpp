// Says why a model cannot guess for another.
#include "engine/drafts.h"

#include <fmt/format.h>

namespace decodelab {

void refuse_draft(const std::string& name, const std::string& known, bool several) {
  if (known.empty()) {
    throw std::invalid_argument("a draft must guess, and none was given: add --draft NAME=MODEL");
  }
  if (name.empty() && several) {
    throw std::invalid_argument(
        fmt::format("which of the drafts {} should guess? Say draft-model:draft=NAME in the arm", known));
  }
  throw std::invalid_argument(
      fmt::format("there is no draft '{}'; those given are {}: add --draft {}=MODEL", name, known, name));
}

void check_draft(const ModelConfig& model, const ModelConfig& draft) {
  if (draft.encoder || model.encoder) {
    throw std::invalid_argument(
        "a draft goes on behind the tokens that a model was fed, and an encoder reads its prompt once: both must be "
        "decoders alone");
  }
  if (draft.vocabulary_size != model.vocabulary_size) {
    throw std::invalid_argument(
        fmt::format("a draft speaks the model's tokens, but it has a vocabulary of {}, and the model one of {}",
                    draft.vocabulary_size, model.vocabulary_size));
  }
}

}  // namespace decodelab
