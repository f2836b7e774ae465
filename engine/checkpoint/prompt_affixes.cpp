// The tokens that a tokenizer.json puts around a prompt.
#include "engine/checkpoint/prompt_affixes.h"

#include <nlohmann/json.hpp>

#include "engine/checkpoint/token_model.h"
#include "engine/checkpoint/tokenizer_part.h"

namespace decodelab {
namespace {

using nlohmann::json;

class AffixReader {
 public:
  explicit AffixReader(const std::string& file_name) : part_("post_processor", file_name) {}

  void read(const json& description) {
    const std::string kind = kind_of(description);
    if (kind == "Sequence") {
      for (const json& inner : part_.list(description, "processors")) {
        read(inner);
      }
    } else if (kind == "TemplateProcessing") {
      read_template(description);
    } else if (kind != "ByteLevel") {
      part_.refuse_kind("TemplateProcessing, ByteLevel, or a Sequence of them", description);
    }
  }

  PromptAffixes take() { return std::move(affixes_); }

 private:
  /// `single` is a list of {"SpecialToken": {"id": "<s>"}}, with one {"Sequence": ...} in the place of the text.
  void read_template(const json& description) {
    PromptAffixes found;
    bool behind = false;
    for (const json& piece : part_.list(description, "single")) {
      if (!piece.is_object() || piece.size() != 1 || !piece.front().is_object() ||
          (piece.contains("Sequence") && behind) || (!piece.contains("Sequence") && !piece.contains("SpecialToken"))) {
        part_.refuse("a template 'single' of special tokens around one sequence", description);
      }
      if (piece.contains("Sequence")) {
        behind = true;
        continue;
      }
      for (const std::int64_t id : ids_of(part_.text(piece.front(), "id"), description)) {
        (behind ? found.behind : found.before).push_back(id);
      }
    }
    if (!behind) {
      part_.refuse("a template 'single' with a sequence", description);
    }
    affixes_.before.insert(affixes_.before.begin(), found.before.begin(), found.before.end());
    affixes_.behind.insert(affixes_.behind.end(), found.behind.begin(), found.behind.end());
  }

  std::vector<std::int64_t> ids_of(const std::string& token, const json& description) const {
    const auto tokens = description.find("special_tokens");
    const auto known = tokens != description.end() && tokens->is_object() ? tokens->find(token) : tokens;
    if (tokens == description.end() || !tokens->is_object() || known == tokens->end() || !known->is_object()) {
      part_.refuse("'special_tokens' with all tokens of the template", description);
    }
    std::vector<std::int64_t> ids;
    for (const json& id : part_.list(*known, "ids")) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kMaxId) {
        part_.refuse("'ids' of special tokens", *known);
      }
      ids.push_back(id.get<std::int64_t>());
    }
    return ids;
  }

  TokenizerPart part_;
  PromptAffixes affixes_;
};

}  // namespace

PromptAffixes read_prompt_affixes(const json& description, const std::string& file_name) {
  if (description.is_null()) {
    return {};
  }
  AffixReader reader(file_name);
  reader.read(description);
  return reader.take();
}

}  // namespace decodelab
