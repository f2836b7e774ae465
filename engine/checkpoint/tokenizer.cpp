// Text to token ids and back, by the byte-level BPE of a tokenizer.json.
#include "engine/checkpoint/tokenizer.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "engine/checkpoint/added_tokens.h"
#include "engine/checkpoint/bpe.h"
#include "engine/checkpoint/pre_tokenizer.h"

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

std::string kind_of(const json& part) {
  const json& type = part.is_object() ? value_of(part, "type") : part;
  return type.is_string() ? type.get<std::string>() : shown(part);
}

// Parts that would change the text before it is cut, or the bytes after; none of them is GPT-2's or StarCoder's.
void check_parts(const json& object, const std::string& file_name) {
  check_keys(object, kFileKeys, file_name);
  const json& version = value_of(object, "version");
  if (!version.is_null() && version != json("1.0")) {
    throw std::invalid_argument(fmt::format("{}: expected version 1.0, got {}", file_name, shown(version)));
  }
  const json& normalizer = value_of(object, "normalizer");
  const bool empty_sequence = normalizer.is_object() && kind_of(normalizer) == "Sequence" &&
                              value_of(normalizer, "normalizers") == json::array();
  if (!normalizer.is_null() && !empty_sequence) {
    throw std::invalid_argument(fmt::format(
        "{}: expected no normalizer, got {}; this tokenizer cannot be read, give token ids with --prompt-ids",
        file_name, in_quotes(kind_of(normalizer))));
  }
  const json& decoder = value_of(object, "decoder");
  if (!decoder.is_null() && kind_of(decoder) != "ByteLevel") {
    throw std::invalid_argument(fmt::format(
        "{}: expected the decoder ByteLevel, got {}; this tokenizer cannot be read, give token ids with --prompt-ids",
        file_name, in_quotes(kind_of(decoder))));
  }
}

}  // namespace

struct Tokenizer::Impl {
  Bpe model;
  PreTokenizer pre_tokenizer;
  AddedTokens added;
  std::int64_t size = 0;

  Impl(const json& object, const std::string& file_name)
      : model(value_of(object, "model"), file_name),
        pre_tokenizer(value_of(object, "pre_tokenizer"), file_name),
        added(value_of(object, "added_tokens"), model, file_name) {
    for (const auto& [id, bytes] : model.bytes_of()) {
      size = std::max(size, id + 1);
    }
    for (const auto& [id, token] : added.by_id()) {
      size = std::max(size, id + 1);
    }
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
  check_parts(object, file_name);
  return Tokenizer(std::make_unique<Impl>(object, file_name));
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  for (const AddedTokenPiece& piece : impl_->added.split(text)) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
      continue;
    }
    for (const std::string& word : impl_->pre_tokenizer.split(piece.text)) {
      impl_->model.encode(word, ids);
    }
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids, bool skip_special) const {
  std::string text;
  for (const std::int64_t id : ids) {
    if (const auto added = impl_->added.by_id().find(id); added != impl_->added.by_id().end()) {
      text += skip_special && added->second.special ? "" : added->second.content;
      continue;
    }
    const auto found = impl_->model.bytes_of().find(id);
    if (found == impl_->model.bytes_of().end()) {
      throw std::invalid_argument(
          fmt::format("expected token ids of this tokenizer (largest {}), got {}", impl_->size - 1, id));
    }
    text += found->second;
  }
  return text;
}

std::int64_t Tokenizer::size() const { return impl_->size; }

}  // namespace decodelab
