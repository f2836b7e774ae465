// Looks for the tokenizer and the chat template of a checkpoint of either kind.
#include "engine/checkpoint/model_text.h"

#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "engine/checkpoint/gguf.h"
#include "engine/checkpoint/gguf_tokenizer.h"

namespace decodelab {
namespace {

ModelText text_of_gguf(const std::filesystem::path& file) {
  const GgufReader reader(file);
  ModelText text;
  text.chat.file_name = file.string();
  try {
    GgufTokenizer stored = read_gguf_tokenizer(reader.file().metadata);
    if (stored.add_bos_token && stored.bos_token_id >= 0) {
      text.affixes.before = {stored.bos_token_id};
    }
    text.chat.text = std::move(stored.chat_template);
    const auto token = [&](std::int64_t id) {
      return id < 0 ? std::string() : stored.tokenizer.decode(std::array{id}, false);
    };
    text.chat.bos_token = token(stored.bos_token_id);
    text.chat.eos_token = token(stored.eos_token_id);
    text.tokenizer = std::move(stored.tokenizer);
  } catch (const std::invalid_argument& error) {
    text.why_not = error.what();
  }
  return text;
}

ModelText text_of_directory(const std::filesystem::path& directory) {
  ModelText text;
  text.chat = load_chat_template(directory);
  const std::filesystem::path file = directory / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    text.why_not = fmt::format("{} is not there; give token ids with --prompt-ids", file.string());
    return text;
  }
  try {
    text.tokenizer = Tokenizer::load(file);
    text.affixes = text.tokenizer->prompt_affixes();
  } catch (const std::invalid_argument& error) {
    text.why_not = error.what();
  }
  return text;
}

}  // namespace

const Tokenizer& ModelText::require_tokenizer(std::string_view flag) const {
  if (!tokenizer) {
    throw std::invalid_argument(fmt::format("{} needs a tokenizer: {}", flag, why_not));
  }
  return *tokenizer;
}

std::vector<std::string> ModelText::token_bytes(std::string_view flag) const {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(require_tokenizer(flag).size()));
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  return token_bytes(flag, ids);
}

std::vector<std::string> ModelText::token_bytes(std::string_view flag, std::span<const std::int64_t> ids) const {
  const Tokenizer& known = require_tokenizer(flag);
  std::vector<std::string> bytes(ids.size());
  for (std::size_t index = 0; index < ids.size(); ++index) {
    try {
      bytes[index] = known.decode_further(ids.subspan(index, 1));
    } catch (const std::invalid_argument&) {
      continue;  // There is no token with this id.
    }
  }
  return bytes;
}

std::vector<std::int64_t> ModelText::prompt_ids(std::string_view flag, std::string_view text) const {
  const std::vector<std::int64_t> words = require_tokenizer(flag).encode(text);
  std::vector<std::int64_t> ids = affixes.before;
  ids.insert(ids.end(), words.begin(), words.end());
  ids.insert(ids.end(), affixes.behind.begin(), affixes.behind.end());
  return ids;
}

std::string ModelText::completion_text(std::span<const std::int64_t> ids, const ModelConfig& config) const {
  return config.encoder ? tokenizer->decode(ids) : tokenizer->decode_further(ids);
}

std::vector<std::int64_t> ModelText::chat_ids(std::string_view flag, std::string_view question) const {
  const Tokenizer& known = require_tokenizer(flag);
  // Templates write the special tokens that a prompt begins with themselves.
  const ChatMessage message{.role = "user", .content = std::string(question)};
  return known.encode(chat.render({&message, 1}));
}

ModelText load_model_text(const std::filesystem::path& checkpoint) {
  return std::filesystem::is_regular_file(checkpoint) ? text_of_gguf(checkpoint) : text_of_directory(checkpoint);
}

}  // namespace decodelab
