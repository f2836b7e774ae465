// Text to token ids and back, as a tokenizer.json says.
#include "engine/checkpoint/tokenizer.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "engine/checkpoint/added_tokens.h"
#include "engine/checkpoint/normalizer.h"
#include "engine/checkpoint/pre_tokenizer.h"
#include "engine/checkpoint/token_decoder.h"
#include "engine/checkpoint/token_model.h"

namespace decodelab {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 9> kFileKeys{"version",        "truncation", "padding",
                                                    "added_tokens",   "normalizer", "pre_tokenizer",
                                                    "post_processor", "decoder",    "model"};
constexpr std::uintmax_t kMaxTokenizerBytes = 200'000'000;  // The largest known has 35 MB.

// The value of a key, null when it is absent.
const json& value_of(const json& object, const char* key) {
  static const json null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

// Other keys could change the ids.
void check_file(const json& object, const std::string& file_name) {
  check_keys(object, kFileKeys, file_name);
  const json& version = value_of(object, "version");
  if (!version.is_null() && version != json("1.0")) {
    throw std::invalid_argument(fmt::format("{}: expected version 1.0, got {}", file_name, shown(version)));
  }
}

}  // namespace

struct Tokenizer::Impl {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<TokenModel> model;
  AddedTokens added;
  TokenDecoder decoder;
  PromptAffixes affixes;
  std::int64_t size = 0;

  Impl(const json& object, const std::string& file_name)
      : normalizer(value_of(object, "normalizer"), file_name),
        pre_tokenizer(value_of(object, "pre_tokenizer"), file_name),
        model(read_token_model(value_of(object, "model"), pre_tokenizer.spelling(), file_name)),
        added(value_of(object, "added_tokens"), *model, normalizer, file_name),
        decoder(value_of(object, "decoder"), pre_tokenizer.spelling(), file_name),
        affixes(read_prompt_affixes(value_of(object, "post_processor"), file_name)) {
    for (const auto& [id, bytes] : model->bytes_of()) {
      size = std::max(size, id + 1);
    }
    for (const auto& [id, token] : added.by_id()) {
      size = std::max(size, id + 1);
    }
  }

  /// Appends the ids of a stretch of the text without added tokens of the raw text in it.
  void encode(std::string_view stretch, bool begins, std::vector<std::int64_t>& ids) const {
    const std::string normalized = normalizer.normalize(stretch);
    for (const AddedTokenPiece& piece : added.split_normalized(normalized)) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
      } else {
        for (const std::string& word :
             pre_tokenizer.split(piece.text, begins && piece.text.data() == normalized.data())) {
          model->encode(word, ids);
        }
      }
    }
  }

  std::vector<std::string> tokens_of(std::span<const std::int64_t> ids, bool skip_special) const {
    std::vector<std::string> tokens;
    for (const std::int64_t id : ids) {
      if (const auto known = added.by_id().find(id); known != added.by_id().end()) {
        if (!skip_special || !known->second.special) {
          tokens.push_back(known->second.content);
        }
        continue;
      }
      const auto found = model->bytes_of().find(id);
      if (found == model->bytes_of().end()) {
        throw std::invalid_argument(
            fmt::format("expected token ids of this tokenizer (largest {}), got {}", size - 1, id));
      }
      tokens.push_back(found->second);
    }
    return tokens;
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::filesystem::path& file) {
  return parse(read_text_file(file, kMaxTokenizerBytes), file.string());
}

Tokenizer Tokenizer::parse(std::string_view json_text, const std::string& file_name) {
  const json object = parse_json_object(json_text, file_name);
  check_file(object, file_name);
  return Tokenizer(std::make_unique<Impl>(object, file_name));
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  for (const AddedTokenPiece& piece : impl_->added.split_raw(text)) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
    } else {
      impl_->encode(piece.text, piece.text.data() == text.data(), ids);
    }
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids, bool skip_special) const {
  return impl_->decoder.decode(impl_->tokens_of(ids, skip_special), /*begins=*/true);
}

std::string Tokenizer::decode_further(std::span<const std::int64_t> ids) const {
  return impl_->decoder.decode(impl_->tokens_of(ids, /*skip_special=*/true), /*begins=*/false);
}

const PromptAffixes& Tokenizer::prompt_affixes() const { return impl_->affixes; }

std::int64_t Tokenizer::size() const { return impl_->size; }

}  // namespace decodelab
